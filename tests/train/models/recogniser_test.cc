#include "train/models/recogniser.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/train/models/sequences.h"

namespace train::models {
namespace {

RecogniserOptions tiny() {
  RecogniserOptions options;
  options.bands = 2;
  options.frames = 12;
  options.together = 2;
  options.labels = 2;
  options.classes = 4;
  options.hidden = 5;
  options.layers = 2;
  options.batch = 3;
  return options;
}

std::unique_ptr<SequenceEngine> make_engine(std::uint64_t seed = 7) {
  SequenceEngine::Options options{seed, 3, 1, 1, {}, 2};
  for (int i = 0; i < 40; ++i) options.table.push_back(std::sin(static_cast<float>(i * i)));
  return make_sequence_engine({}, make_recogniser(tiny()), options);
}

Rows some_rows() {
  Rows rows{tiny().width(), {}};
  for (int sample = 0; sample < 3; ++sample) {
    for (int i = 0; i < 12; ++i) rows.values.push_back((i * 7 + sample * 5) % 20);
    rows.values.push_back(sample + 1);
    rows.values.push_back(sample == 0 ? 0 : 2);
  }
  return rows;
}

TEST(RecogniserTest, TheDefaultHasFourLayersInBothDirections) {
  const auto model = make_recogniser({});
  const std::int64_t first = 2 * (120 + 256 + 1) * 1024;
  const std::int64_t other = 2 * (512 + 256 + 1) * 1024;
  EXPECT_EQ(model->parameters().elements(), first + 3 * other + 513 * 11);
}

TEST(RecogniserTest, GradientIsTheSlopeOfTheLoss) {
  const auto engine = make_engine();
  EXPECT_LT(worst_slope(*engine, some_rows(), 3, 1e-2F), 1e-2);
}

TEST(RecogniserTest, TheSameSeedGivesTheSameBits) {
  EXPECT_EQ(gradient_of(*make_engine(), some_rows()).values,
            gradient_of(*make_engine(), some_rows()).values);
  EXPECT_NE(gradient_of(*make_engine(), some_rows()).values,
            gradient_of(*make_engine(8), some_rows()).values);
}

TEST(RecogniserTest, AScoreIsTheLossAndLogProbabilities) {
  const auto engine = make_engine();
  const std::vector<float> scores = engine->score(some_rows());
  const std::size_t width = 1 + 6 * 4;
  ASSERT_EQ(scores.size(), 3 * width);
  double loss = 0;
  for (std::size_t sample = 0; sample < 3; ++sample) {
    loss += scores[sample * width] / 3;
    for (std::size_t step = 0; step < 6; ++step) {
      double sum = 0;
      for (std::size_t c = 0; c < 4; ++c)
        sum += std::exp(scores[sample * width + 1 + step * 4 + c]);
      EXPECT_NEAR(sum, 1, 1e-5);
    }
  }
  EXPECT_NEAR(loss, gradient_of(*engine, some_rows()).loss, 1e-4);
}

TEST(RecogniserTest, SamplesDoNotDependOnTheirNeighbours) {
  const auto engine = make_engine();
  const Rows all = some_rows();
  const std::vector<float> together = engine->score(all);
  for (std::ptrdiff_t sample = 0; sample < 3; ++sample) {
    const auto begin = all.values.begin() + sample * all.width;
    const std::vector<float> alone = engine->score({all.width, {begin, begin + all.width}});
    for (std::size_t i = 0; i < alone.size(); ++i) {
      EXPECT_NEAR(alone[i], together[static_cast<std::size_t>(sample) * alone.size() + i], 1e-4);
    }
  }
}

}  // namespace
}  // namespace train::models
