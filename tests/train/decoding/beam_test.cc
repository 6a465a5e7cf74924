#include "train/decoding/beam.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>

namespace train::decoding {
namespace {

using Tokens = std::vector<int>;
constexpr int kEnd = 0;
constexpr int kTokens = 3;

/// A network in which every token depends on all before it.
std::vector<double> log_probabilities(const Tokens& before, int seed) {
  double state = seed;
  for (const int token : before) state = std::fmod(state * 1.7 + token + 1, 10);
  std::vector<double> values;
  double sum = 0;
  for (int token = 0; token < kTokens; ++token) {
    values.push_back(std::exp(1.5 * std::sin(state * 2.3 + token * 2.1)));
    sum += values.back();
  }
  for (double& value : values) value = std::log(value / sum);
  return values;
}

Tokens search(const BeamSearch::Options& options, int seed) {
  BeamSearch beam(options);
  while (!beam.live().empty()) {
    std::vector<Candidate> candidates;
    for (std::size_t parent = 0; parent < beam.live().size(); ++parent) {
      const auto next = log_probabilities(beam.live()[parent].tokens, seed);
      for (int token = 0; token < kTokens; ++token) {
        candidates.push_back(
            {static_cast<int>(parent), token, next[static_cast<std::size_t>(token)]});
      }
    }
    beam.advance(candidates);
  }
  return beam.best();
}

/// The best sequence that ends, of all.
Tokens exhaustive(const BeamSearch::Options& options, int seed) {
  Tokens best;
  double best_score = -std::numeric_limits<double>::infinity();
  const std::function<void(Tokens, double)> visit = [&](Tokens tokens, double sum) {
    const auto next = log_probabilities(tokens, seed);
    const double length = static_cast<double>(tokens.size());
    const double score = (sum + next[kEnd]) / std::pow((5 + length) / 6, options.penalty);
    if (score > best_score) {
      best_score = score;
      best = tokens;
    }
    if (length + 1 >= static_cast<double>(options.longest)) return;
    for (int token = 1; token < kTokens; ++token) {
      Tokens longer = tokens;
      longer.push_back(token);
      visit(longer, sum + next[static_cast<std::size_t>(token)]);
    }
  };
  visit({}, 0);
  return best;
}

TEST(BeamTest, AWideBeamFindsTheBest) {
  for (int seed = 1; seed <= 30; ++seed) {
    for (const double penalty : {0.0, 0.6, 1.0}) {
      const BeamSearch::Options options{1000, kEnd, 7, penalty};
      EXPECT_EQ(search(options, seed), exhaustive(options, seed)) << seed << " " << penalty;
    }
  }
}

TEST(BeamTest, AWidthOfOneIsGreedy) {
  for (int seed = 1; seed <= 30; ++seed) {
    Tokens greedy;
    while (greedy.size() < 9) {
      const auto next = log_probabilities(greedy, seed);
      const auto best = std::max_element(next.begin(), next.end()) - next.begin();
      if (best == kEnd) break;
      greedy.push_back(static_cast<int>(best));
    }
    // Endings that were less probable than going on are kept, too, and may win in the end.
    const Tokens found = search({1, kEnd, 9, 0}, seed);
    ASSERT_LE(found.size(), greedy.size());
    EXPECT_TRUE(std::equal(found.begin(), found.end(), greedy.begin())) << seed;
  }
}

TEST(BeamTest, EndsAtTheLongest) {
  BeamSearch beam({2, kEnd, 3, 0.6});
  int steps = 0;
  while (!beam.live().empty()) {
    // It never ends by itself.
    std::vector<Candidate> candidates;
    for (int parent = 0; parent < static_cast<int>(beam.live().size()); ++parent) {
      candidates.push_back({parent, 1, -0.1});
      candidates.push_back({parent, 2, -2.5});
    }
    beam.advance(candidates);
    ++steps;
  }
  EXPECT_EQ(steps, 3);
  EXPECT_EQ(beam.best(), (Tokens{1, 1, 1}));
}

TEST(BeamTest, SaysWhoseContinuationEachIs) {
  BeamSearch beam({2, kEnd, 5, 0});
  beam.advance(std::vector<Candidate>{{0, 1, -1.0}, {0, 2, -2.0}, {0, kEnd, -9.0}});
  ASSERT_EQ(beam.live().size(), 2U);
  beam.advance(std::vector<Candidate>{{0, 1, -5.0}, {0, 2, -3.0}, {1, 1, -0.1}, {1, 2, -0.2}});
  ASSERT_EQ(beam.live().size(), 2U);
  EXPECT_EQ(beam.live()[0].tokens, (Tokens{2, 1}));
  EXPECT_EQ(beam.live()[0].parent, 1);
  EXPECT_EQ(beam.live()[1].tokens, (Tokens{2, 2}));
  EXPECT_EQ(beam.live()[1].parent, 1);
}

}  // namespace
}  // namespace train::decoding
