#include "scalecom/methods/gtopk.h"

#include <gtest/gtest.h>

#include <thread>

#include "scalecom/core/error.h"
#include "tests/methods/plain_sparse.h"
#include "tests/methods/shapes.h"
#include "tests/methods/sparse/worlds.h"

namespace scalecom::methods {
namespace {

using testing::Gradients;
using testing::memory_of;
using testing::mixed_layout;
using testing::same_bits;
using testing::World;

// For any number of ranks, not only powers of two.
TEST(Gtopk, EqualsItsPlainStatementBitForBit) {
  const layout::Layout layout = mixed_layout();
  std::mt19937 random(42);
  for (const int size : {1, 2, 3, 4, 5, 6, 7, 8, 11}) {
    World world(size, "gtopk");
    testing::PlainGtopk plain(size, layout);
    for (int step = 0; step < 7; ++step) {
      Gradients gradients = testing::with_ties(testing::normal(size, layout.elements(), random));
      const std::vector<float> expected = plain.step(gradients);
      world.reduce(gradients, layout);
      for (int rank = 0; rank < size; ++rank) {
        const auto at = static_cast<std::size_t>(rank);
        ASSERT_TRUE(same_bits(gradients[at], expected)) << "size " << size << " step " << step;
        testing::expect_memories(world, rank, layout, plain.memories()[at]);
      }
    }
  }
}

// One entry a tensor. Rank 0 merges its own with rank 1's and drops the smaller; ranks 2 and 3 do
// the same, and the entry that rank 0 dropped comes back with them and wins.
TEST(Gtopk, WhatIsDroppedOnTheWayStaysWhereItWasDropped) {
  const layout::Layout layout({{"w", 0, 4, 4}});
  World world(4, "gtopk");
  Gradients gradients{{8, 0, 0, 0}, {0, 5, 0, 0}, {0, 6, 0, 0}, {0, 6, 0, 0}};
  world.reduce(gradients, layout);
  EXPECT_EQ(gradients[3], (std::vector<float>{0, 3, 0, 0})) << "12 of ranks 2 and 3, over 4";
  EXPECT_EQ(memory_of(world, 0, "w"), (std::vector<float>{8, 5, 0, 0}))
      << "its own, which is in no result, and rank 1's, which it dropped";
  for (const int rank : {1, 2, 3}) {
    EXPECT_EQ(memory_of(world, rank, "w"), (std::vector<float>(4, 0.0F))) << rank;
  }
  for (int rank = 0; rank < 4; ++rank) world.method(rank).undo();
  EXPECT_EQ(memory_of(world, 0, "w"), (std::vector<float>{8, 0, 0, 0}));
  EXPECT_EQ(memory_of(world, 1, "w"), (std::vector<float>{0, 5, 0, 0}));
}

// In the second step rank 0 is alone: what is taken back is that step, and nothing of the first.
TEST(Gtopk, AStepThatFailedBeforeItsExchangeCanBeTakenBack) {
  const layout::Layout layout({{"w", 0, 4, 4}});
  const auto ends = comm::inproc::make_world(4, std::chrono::seconds(5));
  std::vector<std::unique_ptr<Method>> methods;
  for (int rank = 0; rank < 4; ++rank) methods.push_back(make("gtopk"));
  const auto step = [&](std::size_t rank, std::vector<float> gradient) {
    methods[rank]->reduce(core::Buffer::of(gradient.data(), 4), layout, *ends[rank]);
  };
  const Gradients gradients{{8, 0, 0, 0}, {0, 5, 0, 0}, {0, 6, 0, 0}, {0, 6, 0, 0}};
  std::vector<std::thread> threads;
  for (std::size_t rank = 0; rank < 4; ++rank) {
    threads.emplace_back([&, rank] { step(rank, gradients[rank]); });
  }
  for (std::thread& thread : threads) thread.join();
  ASSERT_EQ(testing::copies_of(*methods[0]).at("w"), (std::vector<float>{8, 5, 0, 0}));
  EXPECT_THROW(step(0, {1, 1, 1, 1}), core::PeerError);
  methods[0]->undo();
  EXPECT_EQ(testing::copies_of(*methods[0]).at("w"), (std::vector<float>{9, 6, 1, 1}));
}

// However many ranks there are, a step sends no more than k entries.
TEST(Gtopk, ChoicesOfManyRanksDoNotBuildUp) {
  const layout::Layout layout({{"w", 0, 1000, 100}});
  World world(8, "gtopk");
  Gradients gradients(8, std::vector<float>(1000, 1e-3F));
  for (std::size_t r = 0; r < 8; ++r) {
    for (std::size_t i = 0; i < 10; ++i) gradients[r][100 * i + r] = 1.0F;
  }
  world.reduce(gradients, layout);
  EXPECT_EQ(std::count_if(gradients[0].begin(), gradients[0].end(),
                          [](float value) { return value != 0; }),
            10);
}

}  // namespace
}  // namespace scalecom::methods
