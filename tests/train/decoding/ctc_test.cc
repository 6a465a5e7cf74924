#include "train/decoding/ctc.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <map>

namespace train::decoding {
namespace {

using Symbols = std::vector<int>;

/// Log-probabilities that are nothing in particular.
std::vector<float> some_output(int steps, int classes, int seed) {
  std::vector<float> values;
  for (int step = 0; step < steps; ++step) {
    std::vector<double> weights;
    double sum = 0;
    for (int c = 0; c < classes; ++c) {
      weights.push_back(std::exp(3 * std::sin(seed * 7.1 + step * 3.3 + c * 1.7)));
      sum += weights.back();
    }
    for (const double weight : weights)
      values.push_back(static_cast<float>(std::log(weight / sum)));
  }
  return values;
}

/// The probability of every sequence of symbols, by adding up all ways to say it.
std::map<Symbols, double> all_probabilities(const CtcOutput& output) {
  std::map<Symbols, double> sums;
  const auto steps = output.steps();
  std::vector<int> path(static_cast<std::size_t>(steps));
  while (true) {
    double log_probability = 0;
    Symbols symbols;
    int last = 0;
    for (std::int64_t step = 0; step < steps; ++step) {
      const int label = path[static_cast<std::size_t>(step)];
      log_probability += output.at(step, label);
      if (label != 0 && label != last) symbols.push_back(label);
      last = label;
    }
    sums[symbols] += std::exp(log_probability);
    std::size_t place = 0;
    while (place < path.size() && ++path[place] == output.classes) path[place++] = 0;
    if (place == path.size()) return sums;
  }
}

TEST(CtcTest, GreedyDropsRepeatsAndNothing) {
  const auto spell = [](const std::vector<int>& labels) {
    std::vector<float> values;
    for (const int label : labels) {
      for (int c = 0; c < 4; ++c) values.push_back(c == label ? -0.1F : -3);
    }
    return decode_greedily({values, 4});
  };
  EXPECT_EQ(spell({0, 1, 1, 0, 1, 2, 2, 3, 0}), (Symbols{1, 1, 2, 3}));
  EXPECT_EQ(spell({0, 0}), Symbols());
  EXPECT_EQ(spell({}), Symbols());
}

TEST(CtcTest, AWideBeamFindsTheMostProbable) {
  for (int seed = 0; seed < 20; ++seed) {
    const std::vector<float> values = some_output(5, 3, seed);
    const CtcOutput output{values, 3};
    const auto all = all_probabilities(output);
    const auto best = std::max_element(
        all.begin(), all.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
    EXPECT_EQ(decode_by_beam(output, 1000), best->first) << seed;
  }
}

// One step says 1 with 0.3 and nothing with 0.7. Greedily two of them say nothing, of probability
// 0.49; but 1 has three ways, of 0.51 together.
TEST(CtcTest, ABeamAddsUpWays) {
  std::vector<float> values;
  for (int step = 0; step < 2; ++step) {
    values.push_back(std::log(0.7F));
    values.push_back(std::log(0.3F));
  }
  EXPECT_EQ(decode_greedily({values, 2}), Symbols());
  EXPECT_EQ(decode_by_beam({values, 2}, 4), Symbols{1});
}

// As of a network that has diverged.
TEST(CtcTest, WhatIsNoNumberIsNeverTheBest) {
  const float none = std::numeric_limits<float>::quiet_NaN();
  EXPECT_EQ(decode_by_beam({std::vector<float>{none, -1}, 2}, 4), Symbols{1});
  EXPECT_EQ(decode_by_beam({std::vector<float>{-1, none}, 2}, 4), Symbols());
  const std::vector<float> diverged(12, none);
  EXPECT_LE(decode_by_beam({diverged, 3}, 4).size(), 4U);
}

TEST(CtcTest, ABeamTellsARepeatFromASymbolThatGoesOn) {
  const auto say = [](const std::vector<int>& labels) {
    std::vector<float> values;
    for (const int label : labels) {
      for (int c = 0; c < 3; ++c) values.push_back(c == label ? -0.01F : -6);
    }
    return decode_by_beam({values, 3}, 4);
  };
  EXPECT_EQ(say({1, 1, 1}), Symbols{1});
  EXPECT_EQ(say({1, 0, 1}), (Symbols{1, 1}));
}

}  // namespace
}  // namespace train::decoding
