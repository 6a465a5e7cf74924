#include "train/models/transformer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "tests/train/models/sequences.h"

namespace train::models {
namespace {

using Tokens = std::vector<std::int32_t>;

TransformerOptions tiny() {
  TransformerOptions options;
  options.vocabulary = 9;
  options.width = 8;
  options.heads = 2;
  options.inner = 12;
  options.layers = 2;
  options.longest = 12;
  options.dropout = 0.25;
  options.batch = 2;
  return options;
}

std::unique_ptr<SequenceEngine> make_engine(const TransformerOptions& options = tiny(),
                                            std::uint64_t seed = 3) {
  return make_sequence_engine({}, make_transformer(options),
                              {seed, options.batch, 1, 1, options.positions(), options.width});
}

/// Two samples, of 3 and 2 tokens a side, `end` included, in rows for `length`.
Rows some_rows(std::size_t length = 4) {
  Rows rows{static_cast<std::int64_t>(2 * length + 1), {}};
  const auto append = [&](Tokens tokens, std::size_t width) {
    tokens.resize(width);
    rows.values.insert(rows.values.end(), tokens.begin(), tokens.end());
  };
  append({5, 6, 2}, length);
  append({1, 7, 4, 2}, length + 1);
  append({8, 2}, length);
  append({1, 3, 2}, length + 1);
  return rows;
}

TEST(TransformerTest, TheDefaultIsABaseScaledDown) {
  const auto model = make_transformer({});
  const std::int64_t attention = 4 * 256 * 256 + 4 * 256 + 512;
  const std::int64_t feed_forward = 2 * 256 * 1024 + 1024 + 256 + 512;
  EXPECT_EQ(model->parameters().elements(), 8000 * 256 + 3 * (attention + feed_forward) +
                                                3 * (2 * attention + feed_forward) + 1024);
}

TEST(TransformerTest, GradientIsTheSlopeOfTheLoss) {
  const auto engine = make_engine();
  for (const int noise : {0, 12345}) {
    EXPECT_LT(worst_slope(*engine, some_rows(), 7, 2e-3F, noise), 4e-2) << noise;
  }
}

TEST(TransformerTest, NoiseDecidesWhatIsDropped) {
  const auto engine = make_engine();
  const auto one = gradient_of(*engine, some_rows(), 1);
  EXPECT_EQ(one.values, gradient_of(*engine, some_rows(), 1).values);
  EXPECT_NE(one.values, gradient_of(*engine, some_rows(), 2).values);
  TransformerOptions whole = tiny();
  whole.dropout = 0;
  const auto plain = make_engine(whole);
  EXPECT_EQ(gradient_of(*plain, some_rows(), 1).values, gradient_of(*plain, some_rows(), 2).values);
}

TEST(TransformerTest, DropoutKeepsTheMean) {
  const auto engine = make_engine();
  double sum = 0;
  for (int noise = 0; noise < 200; ++noise) sum += gradient_of(*engine, some_rows(), noise).loss;
  TransformerOptions whole = tiny();
  whole.dropout = 0;
  EXPECT_NEAR(sum / 200, gradient_of(*make_engine(whole), some_rows()).loss, 0.15);
}

// What fills a row up is not looked at.
TEST(TransformerTest, LengthsOfRowsDoNotMatter) {
  const auto engine = make_engine();
  const std::vector<float> tight = engine->score(some_rows(3));
  const std::vector<float> wide = engine->score(some_rows(9));
  ASSERT_EQ(tight.size(), 6U);
  for (std::size_t i = 0; i < 6; ++i) EXPECT_NEAR(tight[i], wide[i], 1e-4);
  EXPECT_EQ(tight[1], 3);
  EXPECT_EQ(tight[4], 2);
}

// What a sample costs, less what it costs without its last token, is what that token costs: the
// probabilities of all tokens there add up to 1, unless those before it know which it is.
TEST(TransformerTest, TokensDoNotSeeLaterOnes) {
  const auto engine = make_engine();
  Rows rows = some_rows(4);
  rows.values.resize(static_cast<std::size_t>(rows.width));
  std::int32_t& last = rows.values[4 + 3];
  last = TransformerOptions::kNothing;
  const double before = engine->score(rows)[0];
  double sum = 0;
  double least = 1;
  for (last = 1; last < 9; ++last) {
    const double probability = std::exp(before - engine->score(rows)[0]);
    sum += probability;
    least = std::min(least, probability);
  }
  // But for that of nothing, which cannot be asked for.
  EXPECT_LT(sum, 1);
  EXPECT_GT(sum, 0.5);
  EXPECT_GT(least, 0);
}

/// Follows the gradient until two samples are known by heart.
std::unique_ptr<SequenceEngine> learned(const Rows& rows) {
  TransformerOptions options = tiny();
  options.dropout = 0;
  auto engine = make_engine(options);
  for (int step = 0; step < 400; ++step) {
    const auto gradient = gradient_of(*engine, rows);
    for (std::size_t i = 0; i < gradient.values.size(); ++i) {
      engine->weights()[i] -= 0.1F * gradient.values[i];
    }
  }
  return engine;
}

TEST(TransformerTest, AnswersWhatItHasLearned) {
  const auto engine = learned(some_rows());
  const std::vector<float> scores = engine->score(some_rows());
  EXPECT_EQ(scores[2], scores[1]);
  EXPECT_EQ(scores[5], scores[4]);
  const std::vector<float> answers = engine->answer({4, {5, 6, 2, 0, 8, 2, 0, 0}});
  EXPECT_EQ(answers, (std::vector<float>{7, 4, 3, 0}));
  // Alone as in company.
  EXPECT_EQ(engine->answer({2, {8, 2}}), std::vector<float>{3});
}

// An answer's tokens come one by one, with what was seen before remembered: without it, or with
// another's, a sentence that repeats itself would not come out as it was learned.
TEST(TransformerTest, RemembersWhatItHasSeen) {
  Rows rows{2 * 8 + 1, {5, 6, 2, 0, 0, 0, 0, 0, 1, 7, 4, 7, 7, 4, 3, 7, 2,
                        6, 5, 2, 0, 0, 0, 0, 0, 1, 7, 4, 7, 4, 4, 3, 2, 0}};
  const auto engine = learned(rows);
  EXPECT_EQ(engine->answer({3, {5, 6, 2, 6, 5, 2}}),
            (std::vector<float>{7, 4, 7, 7, 4, 3, 7, 7, 4, 7, 4, 4, 3, 0}));
}

}  // namespace
}  // namespace train::models
