#include "comparison/measurement.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "comparison/local_step.h"
#include "comparison/traffic.h"
#include "scalecom/layout/rates.h"
#include "scalecom/methods/method.h"

namespace comparison {
namespace {

namespace methods = scalecom::methods;
using nlohmann::ordered_json;

train::runs::Config synthetic() {
  train::runs::Request request;
  request.task = "synthetic";
  request.method = "dense";
  request.batch = 2;
  return resolve(request);
}

/// What the formula says of the busiest rank in the steps that are counted.
std::int64_t stated(const Probe& probe, const std::string& spec, int ranks) {
  const auto method = methods::make(spec);
  const auto layout = scalecom::layout::make_layout(probe.tensors(), method->rate_policy());
  std::int64_t most = 0;
  for (int step = 1; step <= kTrafficSteps; ++step) {
    for (int rank = 0; rank < ranks; ++rank) {
      const auto cost = method->cost(layout, ranks, rank, step).total();
      most = std::max(most, cost.sent + cost.received);
    }
  }
  return most;
}

// Of methods whose sizes follow from the layout.
TEST(Traffic, IsWhatTheFormulaSays) {
  Probe probe(synthetic());
  for (const char* const spec :
       {"dense", "half", "scalecom,rate=20", "scalecom,rate=20,select=random"}) {
    for (const int ranks : {2, 3, 16}) {
      const Moved moved = measure_traffic(probe, spec, ranks);
      EXPECT_EQ(moved.max_rank_bytes, stated(probe, spec, ranks)) << spec << ", " << ranks;
      EXPECT_GT(moved.bytes_per_rank_step, 0);
      EXPECT_LT(moved.bytes_per_rank_step, static_cast<double>(moved.max_rank_bytes));
    }
  }
}

TEST(Traffic, IsThatAfterTheWarmUp) {
  Probe probe(synthetic());
  EXPECT_EQ(measure_traffic(probe, "scalecom,rate=20,warmup=1000", 4).max_rank_bytes,
            measure_traffic(probe, "scalecom,rate=20", 4).max_rank_bytes);
}

TEST(Probe, GivesEveryRankAndStepItsOwnGradient) {
  Probe probe(synthetic());
  const auto gradient = [&](int rank, std::int64_t step) {
    std::vector<float> values(static_cast<std::size_t>(probe.elements()));
    probe.gradient(4, rank, step, values);
    return values;
  };
  EXPECT_EQ(gradient(1, 2), gradient(1, 2));
  EXPECT_NE(gradient(1, 2), gradient(2, 2));
  EXPECT_NE(gradient(1, 2), gradient(1, 3));
}

// The memory is one float an element; what comes on top is for what is sent.
TEST(LocalStep, IsTimedAndWeighed) {
  Probe probe(synthetic());
  const LocalStep step = measure_local_step(probe, "scalecom,rate=50", 3'000'000, 3);
  EXPECT_GE(step.elements, 3'000'000);
  EXPECT_LT(step.elements, 3'000'000 + probe.elements());
  EXPECT_GT(step.ns_per_element, 0);
  EXPECT_GT(step.copy_ns_per_element, 0);
  const double bytes = static_cast<double>(step.method_bytes) / static_cast<double>(step.elements);
  EXPECT_GT(bytes, 2.5);  // the synthetic model's first layer, a third of it, is dense once only
  EXPECT_LT(bytes, 6);
}

class Measurement : public testing::Test {
 protected:
  Measurement() : probe_(synthetic()) {
    plan_.timed_elements = 10'000;
    plan_.timed_repeats = 1;
  }

  Plan plan_;
  Probe probe_;
};

TEST_F(Measurement, HoldsEveryWorldAndCountsItsWork) {
  std::int64_t last = 0;
  const auto figures = measure(
      plan_, probe_, {"scalecom", "scalecom,rate=20"}, [] { return false; },
      [&](std::int64_t done) {
        EXPECT_GT(done, last);
        last = done;
      });
  ASSERT_TRUE(figures);
  EXPECT_EQ(last, measurement_work(probe_.batch()));
  std::vector<int> ranks;
  for (const ordered_json& world : (*figures)["traffic"]) ranks.push_back(world["ranks"]);
  EXPECT_EQ(ranks, std::vector<int>(kWorlds.begin(), kWorlds.end()));
  EXPECT_EQ((*figures)["growth"], "constant");
  EXPECT_EQ((*figures)["method"], "scalecom");
  EXPECT_EQ((*figures)["spec"], "scalecom,rate=20");
  EXPECT_GT((*figures)["ops_per_element"], 2);
  EXPECT_GT((*figures)["ns_per_element"], 0);
  EXPECT_GT((*figures)["copy_ns_per_element"], 0);
  EXPECT_GE((*figures)["timed_elements"], 10'000);
  // Sent, of which the most is sent and received.
  for (const ordered_json& world : (*figures)["traffic"]) {
    EXPECT_LT(world["bytes_per_rank_step"], world["max_rank_bytes"]) << world;
  }
}

TEST_F(Measurement, CanBeStoppedBetweenWorlds) {
  int worlds = 0;
  const auto figures = measure(
      plan_, probe_, {"dense", "dense"}, [&] { return worlds == 2; },
      [&](std::int64_t) { ++worlds; });
  EXPECT_FALSE(figures);
  EXPECT_EQ(worlds, 2);
}

}  // namespace
}  // namespace comparison
