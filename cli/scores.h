#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "train/recipes/table.h"

namespace cli {

/// What an outside program makes of the text of a run: score.json in its folder.
struct Score {
  /// Over the same sentences of two runs.
  struct Paired {
    std::filesystem::path against;     ///< the other run, as the program was told it
    std::optional<double> difference;  ///< of the values
    train::recipes::Interval interval;
  };

  double value = 0;
  std::string metric;
  std::optional<Paired> paired;
};

/// That of a run, if it has one. core::UsageError where the file is damaged.
std::optional<Score> read_score(const std::filesystem::path& run);

/// Has `program` score the text of a run, beside that of its baseline where there is such a run.
/// core::UsageError where it fails.
void score(const std::filesystem::path& run, const std::optional<std::filesystem::path>& baseline,
           const std::string& program);

/// Whether score.json says all that can be said by now. One that is damaged does not.
bool is_scored(const std::filesystem::path& run,
               const std::optional<std::filesystem::path>& baseline);

/// The interval that a run was scored with against that run; nothing where it was scored against
/// another, or none. core::UsageError where the baseline's own score is damaged.
std::optional<train::recipes::Interval> paired_interval(const Score& scored,
                                                        const std::filesystem::path& baseline);

}  // namespace cli
