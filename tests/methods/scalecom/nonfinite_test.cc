#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <functional>
#include <limits>

#include "scalecom/core/error.h"
#include "scalecom/methods/scalecom/scalecom.h"
#include "tests/device.h"
#include "tests/methods/ranks.h"

// NaN and Inf never enter a memory, and every rank hears of them; a step can be taken back.
namespace scalecom::methods {
namespace {

using testing::Gradients;
using testing::layout_of;
using testing::same_bits;
using testing::World;

const std::vector<std::string>& specs() {
  static const std::vector<std::string> all = {"scalecom",
                                               "scalecom,values=bf16",
                                               "scalecom,values=fp16,beta=1",
                                               "scalecom,select=chunk:100",
                                               "scalecom,select=exact",
                                               "scalecom,select=random",
                                               "scalecom,leaders=sharded"};
  return all;
}

std::vector<std::vector<float>> memories_of(World& world) {
  std::vector<std::vector<float>> all;
  for (int r = 0; r < world.size(); ++r) {
    for (const NamedMemory& memory : world.method(r).memories()) {
      all.emplace_back(memory.values.begin(), memory.values.end());
    }
  }
  return all;
}

// One bad entry, anywhere: at the leader or a follower, in a compressed or a dense slice.
TEST(NonFinite, SpoilsTheBucketEverywhereAndNoMemory) {
  const layout::Layout layout = layout_of({{500, 10}, {20, 1}, {300, 30}});
  std::mt19937 random(31);
  for (const std::string& spec : specs()) {
    for (const int bad_rank : {0, 1, 2}) {
      for (const std::size_t bad_entry : {0U, 499U, 510U, 555U, 819U}) {
        World world(3, spec);
        World quiet(3, spec);
        Gradients gradients = testing::normal(3, layout.elements(), random);
        gradients[static_cast<std::size_t>(bad_rank)][bad_entry] =
            bad_entry % 2 == 0 ? std::nanf("") : -INFINITY;
        world.reduce(gradients, layout);
        for (const auto& one : gradients) {
          ASSERT_TRUE(std::all_of(one.begin(), one.end(), [](float x) { return std::isnan(x); }))
              << spec;
        }
        for (const auto& memory : memories_of(world)) {
          ASSERT_TRUE(std::all_of(memory.begin(), memory.end(), [](float x) {
            return std::isfinite(x);
          })) << spec;
        }
      }
    }
  }
}

// What went in with the bad entry stays to be sent; the bad entry counts as nothing.
TEST(NonFinite, TheRestOfTheGradientStaysInTheMemory) {
  const layout::Layout layout = layout_of({{100, 10}});
  World world(2, "scalecom,beta=1");
  Gradients gradients(2, std::vector<float>(100, 2.0F));
  gradients[1][42] = INFINITY;
  world.reduce(gradients, layout);
  for (int r = 0; r < 2; ++r) {
    const NamedMemory memory = world.method(r).memories().front();
    for (std::size_t i = 0; i < 100; ++i) {
      EXPECT_EQ(memory.values[i], r == 1 && i == 42 ? 0.0F : 2.0F);
    }
  }
}

TEST(NonFinite, CanBeAnErrorOnEveryRank) {
  const layout::Layout layout = layout_of({{500, 10}, {20, 1}});
  for (const std::string& spec : specs()) {
    World world(3, spec + ",nonfinite=error");
    Gradients gradients(3, std::vector<float>(520, 1.0F));
    gradients[2][517] = std::nanf("");
    std::atomic<int> errors{0};
    world.run([&](int rank) {
      auto& mine = gradients[static_cast<std::size_t>(rank)];
      EXPECT_THROW(world.reduce_at(rank, core::Buffer::of(mine.data(), 520), layout),
                   core::CheckError);
      ++errors;
    });
    EXPECT_EQ(errors, 3);
    gradients.assign(3, std::vector<float>(520, 1.0F));
    world.reduce(gradients, layout);
    EXPECT_TRUE(std::isfinite(gradients[0][0])) << "and training can go on";
  }
}

TEST(NonFinite, AnOverflowOfFiniteNumbersIsCaughtToo) {
  const float big = std::numeric_limits<float>::max();
  const layout::Layout layout = layout_of({{10, 10}});
  World sums(2, "scalecom,beta=1");
  Gradients gradients(2, std::vector<float>(10, 0.0F));
  gradients[0][3] = gradients[1][3] = big;
  sums.reduce(gradients, layout);  // each is finite, their sum is not
  EXPECT_TRUE(std::isnan(gradients[0][0]));
  EXPECT_EQ(sums.method(0).memories().front().values[3], big);

  World memories(1, "scalecom,beta=1");
  Gradients one(1, std::vector<float>(20, 0.0F));
  one[0][1] = big;
  one[0][2] = big * 0.9F;
  memories.reduce(one, layout_of({{20, 20}}));  // [2] stays in the memory
  one.assign(1, std::vector<float>(20, 0.0F));
  one[0][2] = big;
  memories.reduce(one, layout_of({{20, 20}}));  // and would overflow now
  EXPECT_TRUE(std::isnan(one[0][0]));
  EXPECT_EQ(memories.method(0).memories().front().values[2], big * 0.9F);
}

TEST(NonFinite, ALargeValueIsSentInPartsWhereFp16CannotHoldIt) {
  const layout::Layout layout = layout_of({{10, 10}});
  World world(1, "scalecom,beta=1,values=fp16");
  Gradients gradients(1, std::vector<float>(10, 0.0F));
  gradients[0][3] = 100000.0F;
  world.reduce(gradients, layout);
  EXPECT_EQ(gradients[0][3], 65504.0F);
  gradients.assign(1, std::vector<float>(10, 0.0F));
  world.reduce(gradients, layout);
  EXPECT_EQ(gradients[0][3], 100000.0F - 65504.0F);
}

TEST(Undo, LeavesTheMemoriesAsIfNothingHadBeenSent) {
  std::mt19937 random(32);
  const layout::Layout first({{"x", 0, 500, 10}, {"d", 500, 5, 1}});
  const layout::Layout second({{"y", 0, 300, 20}});
  for (const std::string& spec : specs()) {
    World world(3, spec);
    Gradients g1, g2;
    for (int step = 0; step < 4; ++step) {
      g1 = testing::normal(3, 505, random);
      g2 = testing::normal(3, 300, random);
      world.reduce(g1, first);
      world.reduce(g2, second);
    }
    const auto before = memories_of(world);
    g1 = testing::normal(3, 505, random);
    g2 = testing::normal(3, 300, random);
    const Gradients in1 = g1, in2 = g2;
    world.reduce(g1, first);
    world.reduce(g2, second);
    world.run([&](int rank) { world.method(rank).undo(); });
    const auto after = memories_of(world);
    world.run([&](int rank) { world.method(rank).undo(); });
    EXPECT_EQ(memories_of(world), after) << "a second call changes nothing";
    // x, then y, of every rank: m' = fma(beta, g, m).
    const float beta = spec.find("beta=1") != std::string::npos ? 1.0F : 0.1F;
    for (std::size_t i = 0; i < after.size(); ++i) {
      const std::vector<float>& in = i % 2 == 0 ? in1[i / 2] : in2[i / 2];
      for (std::size_t j = 0; j < after[i].size(); ++j) {
        ASSERT_EQ(after[i][j], std::fma(beta, in[j], before[i][j])) << spec;
      }
    }
  }
}

// A slice that turned dense sent its whole memory; taken back, the memory is there again.
TEST(Undo, BringsBackAMemoryThatWentOutDense) {
  const layout::Layout compressed = layout_of({{200, 10}, {50, 5}});
  for (const layout::Layout& dense :
       {layout_of({{200, 1}, {50, 5}}), layout_of({{200, 1}, {50, 1}})}) {
    World world(2, "scalecom,beta=0.5");
    std::mt19937 random(33);
    Gradients gradients = testing::normal(2, 250, random);
    world.reduce(gradients, compressed);
    const auto before = memories_of(world);
    gradients.assign(2, std::vector<float>(250, 0.0F));
    world.reduce(gradients, dense);
    for (std::size_t i = 0; i < 200; ++i) {
      EXPECT_FLOAT_EQ(gradients[0][i], before[0][i] + before[2][i]) << "m / beta, averaged";
    }
    EXPECT_NE(world.method(0).memories().size(), 2U);
    world.run([&](int rank) { world.method(rank).undo(); });
    EXPECT_EQ(memories_of(world)[0], before[0]);
    EXPECT_EQ(world.method(1).memories().size(), 2U);
  }
}

// Its place among the dense slices is not its place in the bucket.
TEST(Undo, AMemoryGoesOutWhereItsSliceIs) {
  World world(2, "scalecom,beta=0.5");
  std::mt19937 random(35);
  Gradients gradients = testing::normal(2, 250, random);
  world.reduce(gradients, layout_of({{200, 10}, {50, 5}}));
  const auto before = memories_of(world);
  gradients.assign(2, std::vector<float>(250, 0.0F));
  world.reduce(gradients, layout_of({{200, 10}, {50, 1}}));
  for (std::size_t i = 0; i < 50; ++i) {
    EXPECT_FLOAT_EQ(gradients[0][200 + i], before[1][i] + before[3][i]) << "m / beta, averaged";
  }
}

// What an earlier step sent stays sent, and so does what was sent in other units or before a
// restore.
TEST(Undo, BringsBackOnlyWhatTheLastStepSent) {
  const layout::Layout compressed = layout_of({{200, 10}, {50, 5}});
  const layout::Layout dense = layout_of({{200, 1}, {50, 5}});
  const std::vector<std::function<void(World&)>> changes{
      [&](World& world) {
        Gradients gradients(2, std::vector<float>(250, 1.0F));
        world.reduce(gradients, dense);
      },
      [](World& world) { world.run([&](int rank) { world.method(rank).rescale(2); }); },
      [](World& world) { world.run([&](int rank) { world.method(rank).restore(2, {}); }); }};
  for (const std::string spec :
       {"scalecom,beta=0.5", "scalecom,beta=0.5,check=conserve", "weighted,a=1,b=1"}) {
    for (std::size_t change = 0; change < changes.size(); ++change) {
      World world(2, spec);
      std::mt19937 random(70);
      Gradients gradients = testing::normal(2, 250, random);
      world.reduce(gradients, compressed);
      world.reduce(gradients, dense);
      changes[change](world);
      world.run([&](int rank) { world.method(rank).undo(); });
      for (const NamedMemory& memory : world.method(0).memories()) {
        EXPECT_NE(memory.name, "a") << spec << ", change " << change;
      }
    }
  }
}

// What was sent stays sent: a memory that came back after configure() would be sent twice.
TEST(Undo, BringsNothingBackAfterOtherOptions) {
  const layout::Layout compressed = layout_of({{200, 10}, {50, 5}});
  const layout::Layout dense = layout_of({{200, 1}, {50, 5}});
  for (const std::string spec :
       {"scalecom,beta=0.5", "scalecom,beta=0.5,check=conserve", "weighted,a=1,b=1"}) {
    for (const std::string settings : {"nonfinite=nan", "seed=3"}) {
      World world(2, spec);
      std::mt19937 random(34);
      Gradients gradients = testing::normal(2, 250, random);
      world.reduce(gradients, compressed);
      gradients = testing::normal(2, 250, random);
      world.reduce(gradients, dense);
      const auto before = memories_of(world);
      ASSERT_EQ(before.size(), 2U) << "one of each rank went out";
      world.run([&](int rank) {
        world.method(rank).configure(settings);
        world.method(rank).undo();
      });
      EXPECT_EQ(memories_of(world), before) << spec;
    }
  }
}

// Nothing was sent of it, and what the step before sent is not to come back in its place.
TEST(Undo, OfAStepThatALostPeerEndedChangesNothing) {
  if (::scalecom::testing::device().is_cuda()) GTEST_SKIP() << "the host's buckets";
  const layout::Layout layout = layout_of({{100, 10}});
  World world(2, "scalecom");
  Gradients gradients(2, std::vector<float>(100, 1.0F));
  world.reduce(gradients, layout);
  world.end(0).set_deadline(std::chrono::milliseconds(200));
  std::vector<float> mine(100, 2.0F);
  EXPECT_THROW(world.reduce_at(0, core::Buffer::of(mine.data(), 100), layout), core::PeerError);
  const auto before = memories_of(world);
  world.method(0).undo();
  EXPECT_EQ(memories_of(world), before);
}

TEST(Undo, OfABucketThatWasRefusedChangesNothing) {
  const layout::Layout x({{"x", 0, 100, 10}});
  const layout::Layout y({{"y", 0, 100, 10}});
  World world(2, "scalecom");
  Gradients good(2, std::vector<float>(100, 1.0F));
  Gradients bad = good;
  bad[0][7] = std::nanf("");
  world.reduce(good, x);
  world.reduce(bad, y);
  const auto before = memories_of(world);
  world.run([&](int rank) { world.method(rank).undo(); });
  const auto after = memories_of(world);
  EXPECT_NE(before[0], after[0]);
  EXPECT_EQ(before[1], after[1]);
  for (const float m : after[0]) EXPECT_FLOAT_EQ(m, 0.1F);
}

}  // namespace
}  // namespace scalecom::methods
