#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "tests/methods/ranks.h"

// A world that is given a loss scale before every step does what one does that is told by hand, as
// a scaler would: taken back where the scale fell, then brought to the new units.
namespace scalecom::methods {
namespace {

using testing::Gradients;
using testing::layout_of;
using testing::World;

std::vector<std::vector<float>> memories_of(World& world) {
  std::vector<std::vector<float>> all;
  for (int r = 0; r < world.size(); ++r) {
    for (const NamedMemory& memory : world.method(r).memories()) {
      all.emplace_back(memory.values.begin(), memory.values.end());
    }
  }
  return all;
}

void tell(World& world, float last, float now) {
  world.run([&](int rank) {
    if (now < last) world.method(rank).undo();
    if (now != last) world.method(rank).rescale(now / last);
  });
}

class FollowScale : public ::testing::TestWithParam<std::string> {};

TEST_P(FollowScale, IsUndoingAndRescalingByHand) {
  const layout::Layout compressed = layout_of({{700, 10}, {40, 1}, {90, 7}});
  const layout::Layout all_dense = layout_of({{700, 1}, {40, 1}, {90, 1}});
  World followed(3, GetParam());
  World told(3, GetParam());
  std::mt19937 random(3);
  const float scales[] = {1024, 1024, 512, 256, 256, 512, 300, 300, 150, 150};
  float last = scales[0];
  for (int step = 0; step < 10; ++step) {
    const float scale = scales[step];
    followed.follow_scale(scale);
    tell(told, last, scale);
    last = scale;
    ASSERT_EQ(memories_of(followed), memories_of(told)) << step;
    Gradients gradients = testing::normal(3, 830, random);
    // A scaler lowers its scale after a gradient that is not finite. Step 7 sends its memories
    // whole, and is skipped all the same.
    const bool spoilt = step != 7 && step + 1 < 10 && scales[step + 1] < scale;
    if (spoilt) gradients[1][static_cast<std::size_t>(step)] = std::nanf("");
    const layout::Layout& layout = step == 7 ? all_dense : compressed;
    Gradients same = gradients;
    followed.reduce(gradients, layout);
    told.reduce(same, layout);
    for (std::size_t r = 0; r < 3; ++r) {
      ASSERT_TRUE(testing::same_bits(gradients[r], same[r])) << step;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Methods, FollowScale,
                         ::testing::Values("scalecom", "scalecom,select=exact",
                                           "scalecom,values=bf16,leaders=sharded",
                                           "scalecom,check=conserve", "dense", "half"));

// Some bucket of a step is not finite; the others were sent, and come back with it.
TEST(LossScale, TakesBackEveryBucketOfAStep) {
  const layout::Layout first({{"x", 0, 500, 10}});
  const layout::Layout second({{"y", 0, 300, 20}});
  World world(2, "scalecom,beta=1");
  std::mt19937 random(5);
  world.follow_scale(64);
  Gradients x = testing::normal(2, 500, random);
  Gradients y = testing::normal(2, 300, random);
  const Gradients sent = x;
  y[1][3] = std::numeric_limits<float>::infinity();
  world.reduce(x, first);
  world.reduce(y, second);
  world.follow_scale(32);
  const auto memories = memories_of(world);
  for (std::size_t i = 0; i < 500; ++i) ASSERT_EQ(memories[0][i], sent[0][i] / 2) << i;
}

// Memories that are brought back are in the units of the gradients that follow.
TEST(LossScale, TakesBackNothingOfAnEarlierStep) {
  const layout::Layout x({{"x", 0, 100, 10}});
  const layout::Layout y({{"y", 0, 100, 10}});
  World world(1, "scalecom");
  World by_hand(1, "scalecom");
  world.follow_scale(64);
  for (World* each : {&world, &by_hand}) {
    Gradients gradients(1, std::vector<float>(100, 1.0F));
    each->reduce(gradients, x);
    each->reduce(gradients, y);
    gradients.assign(1, std::vector<float>(100, 2.0F));
    each->reduce(gradients, x);  // a step without y
  }
  world.follow_scale(32);
  by_hand.method(0).undo();
  by_hand.method(0).rescale(0.5F);
  const auto ours = world.method(0).memories();
  const auto theirs = by_hand.method(0).memories();
  ASSERT_EQ(ours.size(), 2U);
  for (std::size_t i = 0; i < 2; ++i) {
    EXPECT_TRUE(std::equal(ours[i].values.begin(), ours[i].values.end(), theirs[i].values.begin()))
        << ours[i].name;
  }
}

TEST(LossScale, BeginsAnewAfterARestore) {
  const layout::Layout layout = layout_of({{200, 10}});
  World world(2, "scalecom");
  std::mt19937 random(6);
  world.follow_scale(1024);
  Gradients gradients = testing::normal(2, 200, random);
  world.reduce(gradients, layout);
  const auto before = memories_of(world);
  for (int r = 0; r < 2; ++r) {
    Memories copy;
    for (const NamedMemory& memory : world.method(r).memories()) {
      core::AlignedArray<float> values(static_cast<std::int64_t>(memory.values.size()));
      std::copy(memory.values.begin(), memory.values.end(), values.begin());
      copy.emplace(memory.name, std::move(values));
    }
    world.method(r).restore(1, std::move(copy));
  }
  world.follow_scale(16);
  EXPECT_EQ(memories_of(world), before);
}

}  // namespace
}  // namespace scalecom::methods
