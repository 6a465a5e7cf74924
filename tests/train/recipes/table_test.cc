#include "train/recipes/table.h"

#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

namespace train::recipes {
namespace {

std::vector<Outcome> outcomes(const std::vector<double>& values, std::int64_t first_seed = 1) {
  std::vector<Outcome> all;
  for (const double value : values) {
    Outcome one;
    one.seed = first_seed++;
    one.value = value;
    one.effective_rate = 50.0;
    all.push_back(one);
  }
  return all;
}

Recipe recipe(const std::string& name, const std::string& method,
              const std::string& baseline = "") {
  Recipe made;
  made.name = name;
  made.seeds = {1, 2};
  made.baseline = baseline;
  made.request.method = method;
  return made;
}

void expect_shown(const std::string& text, const std::string& row) {
  EXPECT_NE(text.find(row), std::string::npos) << row << "\n" << text;
}

TEST(TableTest, PairsRunsOfTheSameSeed) {
  // Differences of 1, 2 and 3: a mean of 2, a deviation of 1.
  const auto paired = difference(outcomes({11, 22, 33}), outcomes({10, 20, 30, 40}));
  ASSERT_TRUE(paired);
  EXPECT_EQ(paired->pairs, 3);
  EXPECT_DOUBLE_EQ(paired->mean, 2);
  ASSERT_TRUE(paired->half_width);
  EXPECT_NEAR(*paired->half_width, 4.303 / std::sqrt(3.0), 1e-9);
  ASSERT_TRUE(paired->interval);
  EXPECT_DOUBLE_EQ(paired->interval->low, 2 - *paired->half_width);
  EXPECT_DOUBLE_EQ(paired->interval->high, 2 + *paired->half_width);
}

TEST(TableTest, OnePairHasNoIntervalAndNoneNoDifference) {
  const auto one = difference(outcomes({5}), outcomes({7}));
  ASSERT_TRUE(one);
  EXPECT_DOUBLE_EQ(one->mean, -2);
  EXPECT_FALSE(one->half_width);
  EXPECT_FALSE(one->interval);
  EXPECT_FALSE(difference(outcomes({5}), outcomes({7}, 2)));
}

TEST(TableTest, OnePairHasTheIntervalOverSentencesThatItWasScoredWith) {
  auto runs = outcomes({5, 8});
  runs[0].against_baseline = Interval{-3.5, -0.5};
  runs[1].against_baseline = Interval{-9, 9};
  // The second run has nothing to be compared with, so its interval is of no pair here.
  const auto one = difference(runs, outcomes({7}));
  ASSERT_TRUE(one && one->interval);
  EXPECT_EQ(one->pairs, 1);
  EXPECT_FALSE(one->half_width);
  EXPECT_DOUBLE_EQ(one->interval->low, -3.5);
  EXPECT_DOUBLE_EQ(one->interval->high, -0.5);
  // Of several pairs seeds decide, not sentences: differences of -2 and 0.
  const auto both = difference(runs, outcomes({7, 8}));
  ASSERT_TRUE(both && both->interval);
  EXPECT_NEAR(both->interval->low, -1 - 12.706, 1e-9);
}

TEST(TableTest, AnIntervalOverSentencesIsShownInBrackets) {
  auto runs = outcomes({29.79});
  runs[0].against_baseline = Interval{-0.8, 0.35};
  const auto table = table_json({{recipe("d", "dense"), "BLEU", outcomes({30})},
                                 {recipe("s", "scalecom", "d"), "BLEU", runs},
                                 {recipe("t", "topk", "d"), "BLEU", outcomes({29})}});
  EXPECT_EQ(table[1]["difference"]["interval_95"], nlohmann::ordered_json::array({-0.8, 0.35}));
  EXPECT_EQ(table[1]["difference"]["interval_over"], "sentences");
  EXPECT_TRUE(table[1]["difference"]["half_width_95"].is_null());
  EXPECT_TRUE(table[2]["difference"]["interval_95"].is_null());
  EXPECT_TRUE(table[2]["difference"]["interval_over"].is_null());
  const std::string text = table_markdown(table);
  expect_shown(text, "| 50.0x | -0.21 [-0.80, +0.35] |\n");
  expect_shown(text, "| 50.0x | -1.00 |\n");
  expect_shown(text, "In brackets: the 95% interval over the sentences");
}

TEST(TableTest, ARateBetweenGroupsIsSaidToBeThat) {
  auto runs = outcomes({90});
  runs[0].between_groups = true;
  runs[0].inside_bytes_per_rank_step = 78e6;
  const auto table = table_json({{recipe("flat", "scalecom"), "top-1", outcomes({90})},
                                 {recipe("grouped", "scalecom"), "top-1", runs}});
  EXPECT_EQ(table[0]["effective_rate_of"], "all traffic");
  EXPECT_TRUE(table[0]["inside_bytes_per_rank_step"].is_null());
  EXPECT_EQ(table[1]["effective_rate_of"], "between groups");
  EXPECT_EQ(table[1]["inside_bytes_per_rank_step"], 78e6);
  const std::string text = table_markdown(table);
  expect_shown(text, "| 50.0x | - |\n");
  expect_shown(text, "| 50.0x between groups | - |\n");
}

TEST(TableTest, OfErrorsLessIsBetter) {
  const auto text_of = [](const std::string& metric) {
    return table_markdown(table_json({{recipe("d", "dense"), metric, outcomes({3})}}));
  };
  expect_shown(text_of("word error rate (%)"), "less is better");
  EXPECT_EQ(text_of("BLEU").find("less is better"), std::string::npos);
}

TEST(TableTest, RowsThatHaveRunsAreShown) {
  const Recipe dense = recipe("d", "dense");
  Recipe sparse = recipe("s", "scalecom,rate=9", "d");
  sparse.request.groups = 8;
  const auto table = table_json({{dense, "top-1", outcomes({90, 91})},
                                 {sparse, "top-1", outcomes({89, 91})},
                                 {recipe("m", "dense"), "top-1", {}}});
  ASSERT_EQ(table.size(), 2U);
  EXPECT_TRUE(table[0]["difference"].is_null());
  EXPECT_EQ(table[1]["baseline"], "d");
  EXPECT_EQ(table[1]["mean"], 90);
  EXPECT_EQ(table[1]["difference"]["mean"], -0.5);
  EXPECT_EQ(table[1]["difference"]["pairs"], 2);
  EXPECT_EQ(table[1]["difference"]["interval_over"], "seeds");
  const std::string text = table_markdown(table);
  // Differences of -1 and 0: a deviation of 0.71, and 12.706 / sqrt(2) of it.
  expect_shown(text,
               "| s | 1 | `scalecom,rate=9, groups of 8` | top-1 | 90.00 | 2 of 2 | 50.0x | "
               "-0.50 ± 6.35 |\n");
  EXPECT_EQ(text.find("In brackets"), std::string::npos);
}

}  // namespace
}  // namespace train::recipes
