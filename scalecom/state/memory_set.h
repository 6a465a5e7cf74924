#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "scalecom/state/memories.h"
#include "scalecom/state/memory_file.h"

namespace scalecom::state {

/// What save() writes, without a look at other files.
void write_file(const std::filesystem::path& folder, int rank, int world,
                const RankMemories& memories);

/// Removes the files that a set takes the place of: those of smaller numbers, those of its own
/// number and other sizes, and those of larger numbers where they are complete sets. Only once all
/// files of the set are there and of one save; or, where the ranks know that each has written its
/// own, which need not be to the same folder, each removes its `part`. With them goes what a killed
/// save has left half written. What cannot be removed stays, and does no harm.
void remove_replaced(const std::filesystem::path& folder, const SetName& by,
                     std::optional<int> part = std::nullopt);

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
