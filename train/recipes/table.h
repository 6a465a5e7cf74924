#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "train/recipes/recipe.h"

namespace train::recipes {

struct Interval {
  double low = 0;
  double high = 0;
};

/// What a complete run came to.
struct Outcome {
  std::int64_t seed = 0;
  double value = 0;
  std::optional<double> effective_rate;
  bool between_groups = false;  ///< the rate is that of the link between groups, not of all traffic
  /// What each rank sends inside its group beside what the rate counts; nothing without groups.
  std::optional<double> inside_bytes_per_rank_step;
  /// The 95% interval of the value less that of the baseline's run of this seed, over the sentences
  /// of the test set, where both made text of it that was scored side by side. It says how far
  /// other sentences might change the difference, and nothing of other seeds.
  std::optional<Interval> against_baseline;
};

/// All runs of a recipe that are complete.
struct Outcomes {
  Recipe recipe;
  std::string metric;
  std::vector<Outcome> runs;  ///< with different seeds
};

/// Means of paired runs: those of the same seed.
struct Difference {
  double mean = 0;  ///< of the recipe less that of its baseline
  int pairs = 0;
  /// Half of the 95% interval over seeds, by Student's t; nothing for a single pair.
  std::optional<double> half_width;
  /// The 95% interval: of several pairs over seeds, which is mean -+ half_width; of a single one
  /// over sentences (Outcome::against_baseline), if it has that.
  std::optional<Interval> interval;
};

/// Nothing where no seed is in both.
std::optional<Difference> difference(const std::vector<Outcome>& runs,
                                     const std::vector<Outcome>& baseline);

/// The table for machines: an object for each row that has runs, in the order given.
nlohmann::ordered_json table_json(const std::vector<Outcomes>& rows);
/// And for people, in Markdown.
std::string table_markdown(const nlohmann::ordered_json& table);

}  // namespace train::recipes
