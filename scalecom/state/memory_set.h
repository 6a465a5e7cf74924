#pragma once

#include <compare>
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "scalecom/state/checksum.h"
#include "scalecom/state/memory_file.h"
#include "scalecom/state/safetensors.h"

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

/// What save() writes, without a look at other files.
void write_file(const std::filesystem::path& folder, int rank, int world, const Memories& memories);

/// Removes the files that a set takes the place of: those of smaller numbers, those of its own
/// number and other sizes, and those of larger numbers where they are complete sets. Only once all
/// files of the set are there and of one save; or, where the ranks know that each has written its
/// own, which need not be to the same folder, each removes its `part`. With them goes what a killed
/// save has left half written. What cannot be removed stays, and does no harm.
void remove_replaced(const std::filesystem::path& folder, const SetName& by,
                     std::optional<int> part = std::nullopt);

/// What the metadata of a memory file say besides its tensors.
struct Label {
  std::string method;
  std::int64_t step = 0;
  std::string tag;
  int world = 0;
  int rank = 0;
  Learner learner;
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

/// A set whose headers have been checked.
struct CheckedSet {
  SetName name;
  Label first;                          ///< of rank 0's file
  std::vector<std::vector<int>> ranks;  ///< by learner, its members in their order
  std::vector<std::map<std::string, std::int64_t>> elements;  ///< by member

  int learners() const { return static_cast<int>(ranks.size()); }
  /// A file of the set, checked once more: it may have been replaced meanwhile.
  MemoryFile open(const std::filesystem::path& folder, int learner, std::size_t member) const;
  /// core::UsageError where the parts of a tensor that is divided among members do not fit
  /// together.
  void check_parts(const std::filesystem::path& folder) const;
};

/// The newest complete set; core::UsageError as of describe().
CheckedSet check_set(const std::filesystem::path& folder);

}  // namespace scalecom::state
