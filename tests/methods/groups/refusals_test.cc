#include <gtest/gtest.h>

#include "scalecom/comm/together.h"
#include "scalecom/core/error.h"
#include "tests/methods/groups/two_levels.h"

// What cannot be divided into groups is refused, by every rank alike.
namespace scalecom::methods {
namespace {

using testing::Gradients;
using testing::World;

// Rank 2 says that it is elsewhere.
TEST(Groups, HostsOfDifferentNumbersOfRanksAreRefused) {
  World world(3, "scalecom,groups=node");
  std::vector<std::string> errors(3);
  world.run([&](int rank) {
    if (rank == 2) {
      comm::gather(world.end(rank), std::uint64_t{12345});
      return;
    }
    errors[static_cast<std::size_t>(rank)] =
        testing::refusal([&] { world.method(rank).learner(world.end(rank)); });
  });
  for (const int rank : {0, 1}) {
    EXPECT_NE(errors[static_cast<std::size_t>(rank)].find("there are 2, 1;"), std::string::npos)
        << errors[static_cast<std::size_t>(rank)];
  }
}

TEST(Groups, WhatCannotBeIsRefusedAtEveryRank) {
  EXPECT_NE(testing::refusal([] { make("scalecom,groups=0"); }).find("groups=0 is not allowed"),
            std::string::npos);
  EXPECT_NE(testing::refusal([] { make("dense,groups=host"); }).find("node |"), std::string::npos);
  EXPECT_NE(testing::refusal([] { make("scalecom,select=exact,groups=2"); }).find("whole bucket"),
            std::string::npos);
  const layout::Layout layout({{"w", 0, 100, 10, {100}}});
  World world(5, "scalecom,groups=2");
  std::vector<std::string> errors(5);
  world.run([&](int rank) {
    std::vector<float> gradient(100, 1.0F);
    errors[static_cast<std::size_t>(rank)] = testing::refusal(
        [&] { world.reduce_at(rank, core::Buffer::of(gradient.data(), 100), layout); });
  });
  for (const std::string& error : errors) {
    EXPECT_EQ(error, "[groups] 5 ranks do not divide into groups of 2");
  }
  EXPECT_EQ(world.method(0).steps(), 0);
  World fine(2, "scalecom,groups=2");
  EXPECT_NE(
      testing::refusal([&] { fine.method(0).configure("groups=1"); }).find("keeps its groups"),
      std::string::npos);
  EXPECT_NE(fine.method(0).spec().find(",groups=2"), std::string::npos);
  EXPECT_EQ(make(fine.method(0).spec())->spec(), fine.method(0).spec());
}

TEST(Groups, OptionsThatCannotBeDividedChangeNothing) {
  const layout::Layout layout({{"w", 0, 100, 10, {100}}});
  World world(2, "scalecom,rate=10,groups=2");
  Gradients gradients(2, std::vector<float>(100, 1.0F));
  world.reduce(gradients, layout);
  const std::string before = world.method(0).spec();
  for (int r = 0; r < 2; ++r) {
    EXPECT_NE(testing::refusal([&] {
                world.method(r).configure("rate=5,select=exact");
              }).find("whole bucket"),
              std::string::npos);
  }
  EXPECT_EQ(world.method(0).spec(), before);
  EXPECT_NO_THROW(world.reduce(gradients, layout));
}

// What is still to be sent is not lost silently.
TEST(Groups, MemoriesOfAnotherDivisionAreRefused) {
  const layout::Layout layout({{"w", 0, 100, 10, {100}}});
  World world(4, "scalecom,groups=2");
  std::vector<std::string> errors(4);
  world.run([&](int rank) {
    Memories memories;
    memories.emplace("w[0:20]", core::AlignedArray<float>(20));
    world.method(rank).restore(1, std::move(memories));
    std::vector<float> gradient(100, 1.0F);
    errors[static_cast<std::size_t>(rank)] = testing::refusal(
        [&] { world.reduce_at(rank, core::Buffer::of(gradient.data(), 100), layout); });
  });
  for (const std::string& error : errors) {
    EXPECT_NE(error.find("divided otherwise"), std::string::npos) << error;
  }
}

// A bracket in a name makes a tensor no part of another one, which is there too when buckets
// change.
TEST(Groups, ATensorWithABracketInItsNameIsNoPartOfAnother) {
  const layout::Layout both({{"w", 0, 40, 10, {40}}, {"w[bias]", 40, 40, 10, {40}}});
  const layout::Layout alone({{"w", 0, 40, 10, {40}}});
  for (const std::string groups : {"", ",groups=2"}) {
    World world(2, "scalecom,rate=10" + groups);
    Gradients gradients(2, std::vector<float>(80, 1.0F));
    world.reduce(gradients, both);
    gradients.assign(2, std::vector<float>(40, 1.0F));
    EXPECT_NO_THROW(world.reduce(gradients, alone)) << groups;
  }
}

// What one member cannot begin, as its memory is of another tensor, no rank begins: none waits.
TEST(Groups, EveryRankHearsWhatOneCannotBegin) {
  const layout::Layout layout({{"conv", 0, 1017, 10, {9, 113}}});
  std::mt19937 random(3);
  Gradients gradients = testing::integers(4, 1017, 100, random);
  World whole(4, "scalecom,groups=2");
  whole.reduce(gradients, layout);
  const std::string share = whole.method(1).memories().front().name;
  World world(4, "scalecom,groups=2");
  Memories wrong;
  wrong.emplace(share, core::AlignedArray<float>(3));
  world.method(1).restore(0, std::move(wrong));
  std::vector<std::string> told(4);
  world.run([&](int rank) {
    auto& gradient = gradients[static_cast<std::size_t>(rank)];
    try {
      world.reduce_at(rank, {gradient.data(), 1017}, layout);
    } catch (const core::UsageError& error) {
      told[static_cast<std::size_t>(rank)] = error.what();
    }
  });
  for (const std::string& one : told) EXPECT_NE(one.find("conv"), std::string::npos) << one;
}

}  // namespace
}  // namespace scalecom::methods
