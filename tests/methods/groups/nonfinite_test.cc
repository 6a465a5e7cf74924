#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <limits>

#include "scalecom/core/error.h"
#include "scalecom/core/text.h"
#include "tests/methods/groups/two_levels.h"

// What is not finite at one member is so at every rank of every group.
namespace scalecom::methods {
namespace {

using testing::Gradients;
using testing::World;

TEST(Groups, WhatIsNotFiniteAnywhereIsNaNEverywhereAndNotRemembered) {
  const layout::Layout layout = testing::grouped_model();
  for (const int bad_rank : {0, 3}) {
    for (const std::size_t element : {std::size_t{2}, std::size_t{40}, std::size_t{1500}}) {
      World world(4, "scalecom,beta=1,groups=2");
      std::mt19937 random(10);
      Gradients gradients = testing::integers(4, layout.elements(), 9, random);
      world.reduce(gradients, layout);
      auto expected = testing::memories_of(world, 0, 2);
      gradients = testing::integers(4, layout.elements(), 9, random);
      const Gradients means = testing::group_means(gradients, 2);
      gradients[static_cast<std::size_t>(bad_rank)][element] =
          std::numeric_limits<float>::infinity();
      world.reduce(gradients, layout);
      for (const std::vector<float>& one : gradients) {
        for (const float value : one) ASSERT_TRUE(std::isnan(value));
      }
      // Nothing was sent: all that was finite stays, but for the first entry of each share, which
      // carries the news between groups, and the means that the infinity reaches.
      std::size_t lost = 0;
      for (const auto& [name, memory] : expected) {
        const std::vector<float> now = testing::memories_of(world, 0, 2)[name];
        const std::size_t begin = name == "conv" ? 30 : 1055;
        for (std::size_t i = 0; i < memory.size(); ++i) {
          lost += now[i] != memory[i] + means[0][begin + i] ? 1 : 0;
          ASSERT_TRUE(now[i] == memory[i] || now[i] == memory[i] + means[0][begin + i]);
        }
      }
      EXPECT_LE(lost, bad_rank == 3 ? 0U : 3U);
    }
  }
}

// What a rank's reduction refused with, at every rank. None waits for another until the deadline.
std::vector<std::string> refusals(World& world, const Gradients& gradients,
                                  const layout::Layout& layout) {
  std::vector<std::string> all(gradients.size());
  world.run([&](int rank) {
    const auto at = static_cast<std::size_t>(rank);
    std::vector<float> mine = gradients[at];
    world.end(rank).set_deadline(std::chrono::seconds(10));
    try {
      world.reduce_at(rank, core::Buffer::of(mine.data(), layout.elements()), layout);
    } catch (const core::CheckError& error) {
      all[at] = error.what();
    }
  });
  return all;
}

void expect_refused_everywhere(const std::vector<std::string>& words) {
  for (const std::string& one : words) {
    EXPECT_NE(one.find("not finite"), std::string::npos) << "'" << one << "'";
  }
}

// A share that one member of each group holds, and the others none.
TEST(Groups, WhatIsNotFiniteCanBeAnErrorAtMembersWithoutAShare) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const layout::Layout one({{"w", 0, 1, 1, {1}}});
  for (const auto& [ranks, members] : {std::pair(4, 2), {2, 2}, {6, 3}}) {
    World world(ranks, core::concat("scalecom,nonfinite=error,groups=", members));
    for (std::size_t bad = 0; bad < static_cast<std::size_t>(ranks); ++bad) {
      Gradients gradients(static_cast<std::size_t>(ranks), {1.0F});
      EXPECT_EQ(refusals(world, gradients, one)[bad], "");
      gradients[bad][0] = nan;
      expect_refused_everywhere(refusals(world, gradients, one));
    }
    Gradients gradients(static_cast<std::size_t>(ranks), {2.0F});
    world.reduce(gradients, one);
    EXPECT_EQ(gradients.back()[0], 2.0F) << "and training can go on";
  }
}

TEST(Groups, WhatIsNotFiniteInOneShareCanBeAnErrorEverywhere) {
  const layout::Layout layout({{"w", 0, 40, 10, {40}}});
  for (const std::size_t element : {std::size_t{3}, std::size_t{33}}) {
    for (const std::string spec : {"scalecom,beta=1", "scalecom,beta=1,check=conserve"}) {
      // A NaN reaches every share by its mark.
      World bad(4, spec + ",nonfinite=error,groups=2");
      Gradients gradients(4, std::vector<float>(40, 1.0F));
      gradients[2][element] = std::numeric_limits<float>::quiet_NaN();
      expect_refused_everywhere(refusals(bad, gradients, layout));
      // A sum between groups that overflows is seen in its own share alone.
      for (auto& gradient : gradients) gradient[element] = std::numeric_limits<float>::max();
      World large(4, spec + ",nonfinite=error,groups=2");
      expect_refused_everywhere(refusals(large, gradients, layout));
    }
  }
}

TEST(Groups, WhatIsNotFiniteIsNoErrorUnlessItIsAskedFor) {
  const layout::Layout layout({{"w", 0, 40, 10, {40}}});
  for (const std::string spec : {"scalecom,groups=2", "scalecom,check=conserve,groups=2"}) {
    World world(4, spec);
    Gradients gradients(4, std::vector<float>(40, 1.0F));
    gradients[1][25] = std::numeric_limits<float>::infinity();
    world.reduce(gradients, layout);
    for (const auto& one : gradients) {
      for (const float value : one) ASSERT_TRUE(std::isnan(value)) << spec;
    }
  }
}

}  // namespace
}  // namespace scalecom::methods
