#include "scalecom/methods/topk/topk.h"

#include <gtest/gtest.h>

#include "tests/methods/plain_sparse.h"
#include "tests/methods/sparse/worlds.h"

namespace scalecom::methods {
namespace {

using testing::Gradients;
using testing::memory_of;
using testing::mixed_layout;
using testing::same_bits;
using testing::World;

TEST(Topk, EqualsItsPlainStatementBitForBit) {
  const layout::Layout layout = mixed_layout();
  std::mt19937 random(41);
  for (const int size : {1, 2, 3, 5, 8}) {
    World world(size, "topk");
    testing::PlainTopk plain(size, layout);
    for (int step = 0; step < 9; ++step) {
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

// Tensors that threads of a CPU share, and that a GPU selects from one by one.
TEST(Topk, LongTensorsEqualTheirPlainStatementToo) {
  const layout::Layout layout =
      testing::layout_of({{300000, 100}, {5, 1}, {270001, 1000}, {50, 5}});
  std::mt19937 random(45);
  World world(2, "topk");
  testing::PlainTopk plain(2, layout);
  for (int step = 0; step < 4; ++step) {
    Gradients gradients = testing::with_ties(testing::normal(2, layout.elements(), random));
    const std::vector<float> expected = plain.step(gradients);
    world.reduce(gradients, layout);
    for (int rank = 0; rank < 2; ++rank) {
      const auto at = static_cast<std::size_t>(rank);
      ASSERT_TRUE(same_bits(gradients[at], expected)) << "step " << step;
      testing::expect_memories(world, rank, layout, plain.memories()[at]);
    }
  }
}

// Ranks that choose differently send up to n * k entries: what ScaleCom's shared set prevents.
TEST(Topk, ChoicesOfManyRanksBuildUp) {
  const layout::Layout layout({{"w", 0, 1000, 100}});
  for (const int size : {1, 4, 8}) {
    World world(size, "topk");
    Gradients gradients(static_cast<std::size_t>(size), std::vector<float>(1000, 1e-3F));
    for (std::size_t r = 0; r < gradients.size(); ++r) {
      for (std::size_t i = 0; i < 10; ++i) gradients[r][100 * i + r] = 1.0F;
    }
    world.reduce(gradients, layout);
    const auto sent = std::count_if(gradients[0].begin(), gradients[0].end(),
                                    [](float value) { return value != 0; });
    EXPECT_EQ(sent, 10 * size);
  }
}

}  // namespace
}  // namespace scalecom::methods
