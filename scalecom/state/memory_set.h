#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>

#include "scalecom/state/memory_file.h"
#include "scalecom/state/safetensors.h"

namespace scalecom::state {

/// The name of a rank's file within its folder.
std::string file_name(int rank, int world);

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

  /// core::UsageError where it is not the file of `rank` of `world`.
  static MemoryFile open(const std::filesystem::path& folder, int rank, int world);
};

/// A set whose headers have been checked.
struct CheckedSet {
  Label first;                          ///< of rank 0's file
  std::vector<std::vector<int>> ranks;  ///< by learner, its members in their order
  std::vector<std::map<std::string, std::int64_t>> elements;  ///< by member

  int learners() const { return static_cast<int>(ranks.size()); }
  /// A file of the set, checked once more: it may have been replaced meanwhile.
  MemoryFile open(const std::filesystem::path& folder, int learner, std::size_t member) const;
};

/// core::UsageError as of describe().
CheckedSet check_set(const std::filesystem::path& folder);

}  // namespace scalecom::state
