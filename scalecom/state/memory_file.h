#pragma once

#include <compare>
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "scalecom/state/checksum.h"
#include "scalecom/state/memories.h"
#include "scalecom/state/safetensors.h"

/// One rank's file among those of a save: its name, and what its header says.
namespace scalecom::state {

/// What tells the sets of a folder apart, in the order of their saves.
struct SetName {
  std::int64_t number = 0;  ///< of the save; 0 is in no name
  int world = 0;

  auto operator<=>(const SetName&) const = default;
};

constexpr std::int64_t kMostSaves = 999'999'999'999'999'999;  ///< the largest number of one

/// The name of a rank's file within its folder; without a set, of one that has no number.
std::string file_name(int rank, const SetName& set);
std::string file_name(int rank, int world);
/// The rank and the set that a file's name says; nothing for a name that no save has given.
std::optional<std::pair<int, SetName>> parse_file_name(const std::string& name);

/// What the metadata of a memory file say besides its tensors.
struct Label {
  std::string method;
  std::int64_t step = 0;
  std::string tag;
  int world = 0;
  int rank = 0;
  methods::Learner learner;
};

/// The metadata that a file of this label has; `sums` are the checksums of its tensors by name. A
/// checksum over all of it, names and sizes included, guards the header itself.
Metadata to_metadata(const Label& label, const std::map<std::string, std::int64_t>& elements,
                     const std::map<std::string, std::string>& sums);

/// A memory file whose header has been checked.
struct MemoryFile {
  SafetensorsReader reader;
  Label label;
  std::map<std::string, std::int64_t> elements;
  std::map<std::string, std::string> sums;

  /// core::UsageError where it is not the file of `rank` of the set.
  static MemoryFile open(const std::filesystem::path& folder, int rank, const SetName& set);

  /// core::UsageError where `sum`, of all data that were read of a tensor, is not the file's.
  void check_sum(const std::string& tensor, const Checksum& sum) const;
};

}  // namespace scalecom::state
