#include "train/recipes/table.h"

#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

namespace train::recipes {
namespace {

std::vector<Outcome> outcomes(const std::vector<double>& values, std::int64_t first_seed = 1) {
  std::vector<Outcome> all;
  for (const double value : values) all.push_back({first_seed++, value, 50.0});
  return all;
}

TEST(TableTest, PairsRunsOfTheSameSeed) {
  // Differences of 1, 2 and 3: a mean of 2, a deviation of 1.
  const auto paired = difference(outcomes({11, 22, 33}), outcomes({10, 20, 30, 40}));
  ASSERT_TRUE(paired);
  EXPECT_EQ(paired->pairs, 3);
  EXPECT_DOUBLE_EQ(paired->mean, 2);
  ASSERT_TRUE(paired->half_width);
  EXPECT_NEAR(*paired->half_width, 4.303 / std::sqrt(3.0), 1e-9);
}

TEST(TableTest, OnePairHasNoIntervalAndNoneNoDifference) {
  const auto one = difference(outcomes({5}), outcomes({7}));
  ASSERT_TRUE(one);
  EXPECT_DOUBLE_EQ(one->mean, -2);
  EXPECT_FALSE(one->half_width);
  EXPECT_FALSE(difference(outcomes({5}), outcomes({7}, 2)));
}

TEST(TableTest, RowsThatHaveRunsAreShown) {
  Recipe dense;
  dense.name = "d";
  dense.seeds = {1, 2};
  dense.request.method = "dense";
  Recipe sparse = dense;
  sparse.name = "s";
  sparse.baseline = "d";
  sparse.request.method = "scalecom,rate=9";
  sparse.request.groups = 8;
  Recipe missing = dense;
  missing.name = "m";
  const auto table = table_json({{dense, "top-1", outcomes({90, 91})},
                                 {sparse, "top-1", outcomes({89, 91})},
                                 {missing, "top-1", {}}});
  ASSERT_EQ(table.size(), 2U);
  EXPECT_TRUE(table[0]["difference"].is_null());
  EXPECT_EQ(table[1]["baseline"], "d");
  EXPECT_EQ(table[1]["mean"], 90);
  EXPECT_EQ(table[1]["difference"]["mean"], -0.5);
  EXPECT_EQ(table[1]["difference"]["pairs"], 2);
  const std::string text = table_markdown(table);
  EXPECT_NE(text.find("| s | 1 | `scalecom,rate=9, groups of 8` | top-1 | 90.00 | 2 of 2 | 50.0x | "
                      "-0.50 ± 6.35 |"),
            std::string::npos)
      << text;
}

}  // namespace
}  // namespace train::recipes
