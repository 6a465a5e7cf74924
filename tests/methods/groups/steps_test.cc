#include <gtest/gtest.h>

#include <set>

#include "tests/methods/groups/two_levels.h"

// All members of a group count the same steps, those too that have no share of a tensor.
namespace scalecom::methods {
namespace {

using testing::Gradients;
using testing::World;

// Else what is saved after the step lacks a part of "long", and loads as a shorter tensor.
TEST(Groups, AWarmUpEndsForAMemberWithoutAShareToo) {
  const layout::Layout both({{"short", 0, 10, 10, {10}}, {"long", 10, 40, 10, {40}}});
  const layout::Layout alone({{"short", 0, 10, 10, {10}}});
  World world(2, "scalecom,rate=10,warmup=1,groups=2");
  Gradients gradients(2, std::vector<float>(50, 1.0F));
  world.reduce(gradients, both);
  gradients.assign(2, std::vector<float>(10, 1.0F));
  world.reduce(gradients, alone);
  std::set<std::string> names;
  for (int rank = 0; rank < 2; ++rank) {
    for (const NamedMemory& memory : world.method(rank).memories()) names.insert(memory.name);
  }
  EXPECT_EQ(names, (std::set<std::string>{"long[0:20]", "long[20:40]", "short"}));
}

// The steps of a replayed graph are the members' too.
TEST(Groups, AReplayedStepIsTakenBack) {
  const layout::Layout layout({{"conv", 0, 1017, 10, {9, 113}}});
  const auto undone = [&](int replays) {
    World world(4, "scalecom,beta=1,groups=2");
    std::mt19937 random(3);
    Gradients gradients = testing::integers(4, 1017, 100, random);
    world.reduce(gradients, layout);
    const auto sent = testing::memories_of(world, 0, 2);
    for (int rank = 0; rank < 4; ++rank) {
      if (replays > 0) world.method(rank).replayed(1 + replays);
      world.method(rank).undo();
    }
    EXPECT_NE(testing::memories_of(world, 0, 2), sent);
    return testing::memories_of(world, 0, 2);
  };
  EXPECT_EQ(undone(4), undone(0));
}

// A member that had no part in the last step has nothing to take back of it.
TEST(Groups, UndoIsOfTheLastStepAlone) {
  World world(4, "scalecom,beta=1,groups=2");
  const layout::Layout most({{"conv", 0, 1017, 10, {9, 113}}});
  const layout::Layout one({{"one", 0, 1, 1, {1}}});
  std::mt19937 random(3);
  Gradients gradients = testing::integers(4, 1017, 100, random);
  Gradients small = testing::integers(4, 1, 100, random);
  world.reduce(gradients, most);
  world.reduce(small, one);
  const auto before = testing::memories_of(world, 0, 2);
  world.reduce(small, one);  // comes again: a step of its own
  for (int rank = 0; rank < 4; ++rank) world.method(rank).undo();
  EXPECT_EQ(testing::memories_of(world, 0, 2), before);
  // A scale that falls has skipped the step of the one element; the memories follow it.
  world.follow_scale(4);
  world.reduce(small, one);
  world.follow_scale(2);
  auto halved = before;
  for (auto& [name, values] : halved) {
    for (float& value : values) value /= 2;
  }
  EXPECT_EQ(testing::memories_of(world, 0, 2), halved);
}

// A member without a share of some steps counts them all the same.
TEST(Groups, AWarmUpEndsForAllMembersAtOnce) {
  World world(4, "scalecom,beta=1,groups=2,warmup=4");
  const layout::Layout one({{"one", 0, 1, 1, {1}}});
  const layout::Layout most({{"conv", 0, 1017, 10, {9, 113}}});
  std::mt19937 random(3);
  for (int step = 0; step < 3; ++step) {
    Gradients small = testing::integers(4, 1, 100, random);
    world.reduce(small, one);
  }
  // The first of these belongs to the step before: no tensor has come again.
  for (int step = 2; step < 8; ++step) {
    Gradients gradients = testing::integers(4, 1017, 100, random);
    const auto before = testing::memories_of(world, 0, 2);
    const auto other = testing::memories_of(world, 2, 2);
    std::vector<float> due(1017);
    for (std::size_t i = 0; i < due.size(); ++i) {
      for (const std::vector<float>& rank : gradients) due[i] += rank[i] / 4;
    }
    for (const auto* memories : {&before, &other}) {
      if (!memories->contains("conv")) continue;
      const std::vector<float>& values = memories->at("conv");
      for (std::size_t i = 0; i < values.size(); ++i) due[i] += values[i] / 2;
    }
    world.reduce(gradients, most);
    const auto after = testing::memories_of(world, 0, 2);
    const auto other_after = testing::memories_of(world, 2, 2);
    if (step < 4) {
      EXPECT_FALSE(after.contains("conv"));
      EXPECT_TRUE(testing::same_bits(gradients[0], due));
      continue;
    }
    ASSERT_EQ(after.at("conv").size(), due.size()) << step;
    for (std::size_t i = 0; i < due.size(); ++i) {
      const float left = (after.at("conv")[i] + other_after.at("conv")[i]) / 2;
      ASSERT_EQ(gradients[0][i] + left, due[i]) << step << ", element " << i;
    }
  }
}

// Steps of two buckets, of whose first one member has no share: to it, no tensor came again.
TEST(Groups, UndoTakesBackOneStepAtAMemberWithoutAShare) {
  World world(4, "scalecom,beta=1,groups=2");
  const layout::Layout small({{"a", 0, 1, 1, {1}}});
  const layout::Layout used({{"b", 0, 1017, 10, {9, 113}}});
  const layout::Layout unused({{"c", 0, 1017, 10, {9, 113}}});
  std::mt19937 random(5);
  const auto bring = [&](const layout::Layout& layout) {
    Gradients gradients = testing::integers(4, layout.elements(), 100, random);
    world.reduce(gradients, layout);
  };
  bring(small);
  bring(used);
  bring(small);
  const auto before = testing::memories_of(world, 0, 2);
  bring(unused);
  for (int rank = 0; rank < world.size(); ++rank) world.method(rank).undo();
  EXPECT_TRUE(testing::same_bits(testing::memories_of(world, 0, 2).at("b"), before.at("b")));
}

}  // namespace
}  // namespace scalecom::methods
