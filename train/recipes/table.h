#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "train/recipes/recipe.h"

namespace train::recipes {

/// What a complete run came to.
struct Outcome {
  std::int64_t seed = 0;
  double value = 0;
  std::optional<double> effective_rate;
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
  std::optional<double> half_width;  ///< of the 95% interval; nothing for a single pair
};

/// Nothing where no seed is in both.
std::optional<Difference> difference(const std::vector<Outcome>& runs,
                                     const std::vector<Outcome>& baseline);

/// The table for machines: an object for each row that has runs, in the order given.
nlohmann::ordered_json table_json(const std::vector<Outcomes>& rows);
/// And for people, in Markdown.
std::string table_markdown(const nlohmann::ordered_json& table);

}  // namespace train::recipes
