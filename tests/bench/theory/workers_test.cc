#include "bench/theory/workers.h"

#include <gtest/gtest.h>

#include <cmath>

#include "bench/theory/settings.h"
#include "scalecom/core/text.h"

// The paper's two lemmas on random vectors, with the library's own steps. docs/theory.md shows what
// is measured here.
namespace bench::theory {
namespace {

constexpr std::uint64_t kSeeds = 3;

std::string text(const Draw& draw) {
  return scalecom::core::concat(to_string(draw.distribution), ", ", draw.workers,
                                " workers, correlation ", draw.correlation, ", seed ", draw.seed);
}

TEST(Vectors, HaveTheCorrelationThatIsAskedFor) {
  for (const double correlation : {0.0, 0.3, 0.9, 1.0}) {
    const Vectors vectors = draw({Distribution::kNormal, 8, 20'000, correlation, 1});
    EXPECT_NEAR(correlation_of(vectors), correlation, 0.02);
  }
  EXPECT_NEAR(correlation_of({{1, 0}, {0, 1}}), 0, 1e-12);
  EXPECT_NEAR(correlation_of({{1, 2}, {-1, -2}}), -1, 1e-12);
}

/// What a property is asked of: every number of workers, correlation and seed.
template <typename Property>
void for_each_draw(Distribution distribution, const Property& property) {
  for (const int workers : {2, 4, 16}) {
    for (const double correlation : {0.0, 0.3, 0.9}) {
      for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
        property(Draw{distribution, workers, kElements, correlation, seed});
      }
    }
  }
}

class Lemma1 : public testing::TestWithParam<Distribution> {};

// In the mean over leaders, who take turns, and whatever workers have in common.
TEST_P(Lemma1, BoundsTheContraction) {
  for_each_draw(GetParam(), [](const Draw& what) {
    const Vectors vectors = draw(what);
    for (const char* select : {"chunk", "exact"}) {
      const Step step = mean(steps_by_leader(vectors, kRate, select));
      EXPECT_LE(step.of_mean.measured, step.of_mean.bound()) << text(what) << ", " << select;
      EXPECT_GE(step.of_mean.measured, step.of_mean.exact - 1e-6) << "no set beats the exact one";
    }
  });
}

INSTANTIATE_TEST_SUITE_P(Distributions, Lemma1,
                         testing::Values(Distribution::kNormal, Distribution::kUniform,
                                         Distribution::kLaplace, Distribution::kStudent3),
                         [](const auto& info) { return to_string(info.param); });

// Vectors of which few entries are not zero, and hardly any of them at two workers: what a leader
// misses is a fair sample of the rest, and the entries that it sends in their place are zero. The
// bound is then what happens.
TEST(Lemma1Limits, IsMetWhereWorkersHaveNothingInCommonButZeros) {
  for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
    const Step step = mean(
        steps_by_leader(draw({Distribution::kSparse, 2, 20 * kElements, 0, seed}), kRate, "exact"));
    EXPECT_NEAR(step.of_mean.measured, step.of_mean.bound(), 0.01) << seed;
  }
}

// The lemma takes it that a leader misses large entries no sooner than small ones. Where a few
// entries are nearly all of a vector, whether the leader has them decides, and the bound fails.
TEST(Lemma1Limits, FailsWhereAFewEntriesAreNearlyEverything) {
  int over = 0;
  for_each_draw(Distribution::kCauchy, [&](const Draw& what) {
    const Step step = mean(steps_by_leader(draw(what), kRate, "chunk"));
    if (step.of_mean.measured > step.of_mean.bound()) ++over;
  });
  EXPECT_GT(over, 0);
}

TEST(Lemma2, BoundsTheContractionOfTheMean) {
  for (const Distribution distribution : kDistributions) {
    for_each_draw(distribution, [](const Draw& what) {
      const Vectors vectors = draw(what);
      const double correlation = correlation_of(vectors);
      for (const Step& step : steps_by_leader(vectors, kRate, "chunk")) {
        EXPECT_LE(step.of_mean.measured,
                  lemma2_bound(step.of_workers, correlation, what.workers) * (1 + 1e-5))
            << text(what);
      }
    });
  }
}

// The more workers have in common, the less is left behind: from each value of the correlation to
// the next, at every number of workers, and down to what the exact set leaves where all are alike.
TEST(Lemma2, ContractionFallsWithCorrelation) {
  for (const int workers : {2, 4, 16}) {
    double last = 1;
    for (const double correlation : {0.0, 0.2, 0.4, 0.6, 0.8, 1.0}) {
      double contraction = 0;
      double excess = 0;
      for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
        const Step step = mean(steps_by_leader(
            draw({Distribution::kNormal, workers, kElements, correlation, seed}), kRate, "chunk"));
        contraction += step.of_mean.measured / kSeeds;
        excess += (step.of_mean.measured - step.of_mean.exact) / kSeeds;
      }
      EXPECT_LT(contraction, last) << workers << " workers, correlation " << correlation;
      last = contraction;
      if (correlation == 1) {
        EXPECT_NEAR(excess, 0, 1e-6);
      }
    }
  }
}

}  // namespace
}  // namespace bench::theory
