#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "tests/device.h"
#include "tests/methods/sparse/worlds.h"

// Bytes really moved equal what the methods state, and grow with the number of ranks as they must.
namespace scalecom::methods {
namespace {

using testing::Gradients;
using testing::layout_of;
using testing::World;

std::vector<std::string> specs() {
  if (::scalecom::testing::device().is_cuda())
    return {"topk", "topk,warmup=3", "dgc", "dgc,warmup=4"};
  return {"topk", "topk,warmup=3", "gtopk", "gtopk,warmup=3", "dgc", "dgc,warmup=4"};
}

std::int64_t busiest(World& world, const layout::Layout& layout, std::int64_t step) {
  std::int64_t most = 0;
  for (int rank = 0; rank < world.size(); ++rank) {
    const comm::Traffic total = world.method(rank).cost(layout, world.size(), rank, step).total();
    most = std::max(most, total.sent + total.received);
  }
  return most;
}

// For dgc, whose counts depend on the data, that is the sum of what was packed.
TEST(SparseTraffic, CountersEqualWhatIsStated) {
  std::mt19937 random(71);
  for (const layout::Layout& layout : {layout_of({{7000, 10}, {31, 1}, {333, 25}, {1, 3}, {0, 9}}),
                                       layout_of({{50, 1}}), layout_of({{500, 100}})}) {
    for (const std::string& spec : specs()) {
      for (const int size : {1, 2, 3, 4, 5, 8}) {
        World world(size, spec);
        std::vector<comm::Counters> before(static_cast<std::size_t>(size));
        for (std::int64_t step = 0; step < 6; ++step) {
          for (int r = 0; r < size; ++r) {
            before[static_cast<std::size_t>(r)] = world.end(r).counters();
          }
          Gradients gradients = testing::normal(size, layout.elements(), random);
          world.reduce(gradients, layout);
          if (step == 0) continue;  // in which the ranks also agree on what they do
          for (int r = 0; r < size; ++r) {
            const comm::Counters moved =
                world.end(r).counters() - before[static_cast<std::size_t>(r)];
            ASSERT_EQ(moved, world.method(r).cost(layout, size, r, step))
                << spec << ", rank " << r << " of " << size << ", step " << step;
          }
        }
      }
    }
  }
}

// A step that was not taken yet: what the rate asks for, and what comes then is near it.
TEST(SparseTraffic, AStepToComeIsStatedByItsRate) {
  const layout::Layout layout = layout_of({{200000, 100}});
  World world(3, "dgc,rate=100");
  const auto fresh = make("dgc,rate=100");
  std::mt19937 random(72);
  for (std::int64_t step = 0; step < 3; ++step) {
    Gradients gradients = testing::normal(3, layout.elements(), random);
    world.reduce(gradients, layout);
    const double wanted = static_cast<double>(fresh->cost(layout, 3, 1, step).total().sent);
    const double packed =
        static_cast<double>(world.method(1).cost(layout, 3, 1, step).total().sent);
    EXPECT_NEAR(packed / wanted, 1, 0.31);
  }
}

// Measured by really running them: topk and dgc grow with n, gtopk with log n.
TEST(SparseTraffic, GrowsWithTheNumberOfRanks) {
  const layout::Layout layout = layout_of({{20000, 100}});
  for (const std::string& spec : specs()) {
    if (spec.find("warmup") != std::string::npos) continue;
    std::mt19937 random(73);
    std::map<int, double> bytes;
    for (const int size : {2, 4, 8, 16, 32}) {
      World world(size, spec);
      Gradients gradients = testing::normal(size, layout.elements(), random);
      world.reduce(gradients, layout);
      bytes[size] = static_cast<double>(busiest(world, layout, 0)) * size / (2.0 * (size - 1));
    }
    if (spec == "gtopk") {
      // Rank 0: a message a round, and the broadcast, in units of 2(n-1)/n.
      const double a_round = bytes[8] - bytes[4];
      EXPECT_NEAR(bytes[16] - bytes[8], a_round, 0.35 * a_round);
      EXPECT_NEAR(bytes[32] - bytes[16], a_round, 0.35 * a_round);
    } else {
      // dgc's counts follow from a threshold that was sampled.
      const double tolerance = spec.starts_with("dgc") ? 0.31 : 0.01;
      for (const int size : {4, 8, 16}) {
        EXPECT_NEAR(bytes[2 * size] / bytes[size], 2, tolerance) << spec << " " << size;
      }
    }
  }
}

}  // namespace
}  // namespace scalecom::methods
