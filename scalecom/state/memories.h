#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "scalecom/core/aligned_array.h"
#include "scalecom/methods/learner.h"

namespace scalecom::state {

/// One rank's memories, as they are to be saved.
struct RankMemories {
  struct Named {
    std::string name;
    std::span<const float> data;
  };

  std::string method;     ///< as its owner writes it; the ranks' files have to agree on it
  std::int64_t step = 0;  ///< to methods::kMostSteps; the ranks' files have to agree on it
  std::vector<Named> named;
  /// Anything that the ranks of one save share and other saves do not, such as a run's seed and
  /// start: with it, not even two saves of the same step can be taken for one.
  std::string tag;
  /// The learner that the rank belongs to, where groups of ranks share a memory among them, each
  /// rank having parts of its tensors, "fc[200:400]". Else every rank is one.
  std::optional<methods::Learner> learner = std::nullopt;
  /// Of the save, in its folder: larger than those before, and the same at every rank. A save with
  /// a number of its own replaces no file of another.
  std::int64_t number = 0;
};

/// Writes PATH/rank-00003-of-00008.safetensors, or, where the save has a number, PATH/
/// rank-00003-of-00008-save-000000012.safetensors, making the folder where there is none. Each rank
/// calls it, in any order; a rank's file is replaced whole or stays as it was (core::IoError).
///
/// The set is saved when every rank has returned, and takes the place of those before it, whose
/// files are removed when it is seen to be complete. Files of different steps, methods or tags
/// never load together. So a save that is cut short leaves the last complete set as it was where it
/// has another number or another number of ranks, and nothing that loads where it has the same.
void save(const std::filesystem::path& folder, int rank, int world, const RankMemories& memories);

/// A number that no file of the folder has, larger than all of them: 0 where there is none. Ranks
/// that may see different files take the largest of theirs.
std::int64_t next_number(const std::filesystem::path& folder);

/// What a folder holds.
struct Saved {
  int world = 0;
  int learners = 0;  ///< `world`, unless ranks share memories
  std::string method;
  std::int64_t step = 0;
  std::string tag;
  /// By name, the same at every learner. One that is divided is named with its parts.
  std::map<std::string, std::int64_t> elements;
};

/// One rank's memories, loaded.
struct Loaded {
  std::string method;
  std::int64_t step = 0;
  std::map<std::string, core::AlignedArray<float>> memories;
};

/// Checks the newest complete set of a folder: of the largest number, and among sets of the same,
/// which have other numbers of ranks, of the latest step. Files of other names, sets that lack a
/// file and, where there is another, one whose files are of different saves are passed over.
/// core::UsageError, naming the file and what is wrong, where there is no complete set, nothing
/// tells which is the newest, or a file is truncated, foreign, damaged or at odds with the others.
Saved describe(const std::filesystem::path& folder);

/// The memories of learner `number` of `learners`, from a set saved by any number of them. The same
/// number: bit for bit. Another: learner j of n' gets the mean of the old memories over [j/n',
/// (j+1)/n'), when old learner i of n stands for [i/n, (i+1)/n), so that the mean over all stays
/// what it was; summed in double, rounded once. Tensors that were divided among ranks are whole.
/// All headers of the set are checked as by describe(), and of the files that are read, all data.
Loaded load(const std::filesystem::path& folder, int number, int learners);

}  // namespace scalecom::state
