#include "scalecom/methods/groups/grouped.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <limits>
#include <map>
#include <set>

#include "scalecom/comm/together.h"
#include "scalecom/core/error.h"
#include "scalecom/core/text.h"
#include "tests/methods/ranks.h"

// Groups of ranks are learners: what comes out, what is remembered and what crosses between them is
// that of the method with one rank a group, on the groups' means.
namespace scalecom::methods {
namespace {

using testing::Gradients;
using testing::World;

// Tensors with tails, one shorter than the group is large, an empty one and dense ones.
layout::Layout model() {
  return layout::Layout({{"first", 0, 30, 1, {30}},
                         {"conv", 30, 1017, 10, {9, 113}},
                         {"bias", 1047, 7, 1, {7}},
                         {"one", 1054, 1, 1, {1}},
                         {"none", 1055, 0, 1, {0}},
                         {"fc", 1055, 530, 25, {53, 10}}});
}

// Of whole numbers, whose sums are exact.
Gradients group_means(const Gradients& gradients, int members) {
  Gradients means;
  for (std::size_t first = 0; first < gradients.size();
       first += static_cast<std::size_t>(members)) {
    std::vector<float> sum(gradients[first].size(), 0.0F);
    for (std::size_t r = first; r < first + static_cast<std::size_t>(members); ++r) {
      for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += gradients[r][i];
    }
    for (float& value : sum) value /= static_cast<float>(members);
    means.push_back(sum);
  }
  return means;
}

// A tensor's memory, from the parts that the members of group `group` hold.
std::map<std::string, std::vector<float>> memories_of(World& world, int first, int members) {
  std::map<std::string, std::map<std::int64_t, std::vector<float>>> parts;
  for (int r = first; r < first + members; ++r) {
    for (const NamedMemory& memory : world.method(r).memories()) {
      const std::size_t bracket = memory.name.find('[');
      const std::int64_t begin =
          bracket == std::string::npos ? 0 : std::stoll(memory.name.substr(bracket + 1));
      parts[memory.name.substr(0, bracket)][begin].assign(memory.values.begin(),
                                                          memory.values.end());
    }
  }
  std::map<std::string, std::vector<float>> whole;
  for (const auto& [name, by_begin] : parts) {
    for (const auto& [begin, values] : by_begin) {
      EXPECT_EQ(static_cast<std::int64_t>(whole[name].size()), begin) << name;
      whole[name].insert(whole[name].end(), values.begin(), values.end());
    }
  }
  return whole;
}

class Grouped : public ::testing::TestWithParam<std::string> {};

TEST_P(Grouped, AreLearners) {
  const layout::Layout layout = model();
  for (const auto& [ranks, members] : {std::pair(4, 2), {8, 4}, {6, 2}, {2, 2}, {3, 1}}) {
    World two_levels(ranks, core::concat(GetParam(), ",groups=", members));
    World one_level(ranks / members, GetParam());
    std::mt19937 random(7);
    for (int step = 0; step < 5; ++step) {
      Gradients gradients = testing::integers(ranks, layout.elements(), 50, random);
      Gradients means = group_means(gradients, members);
      two_levels.reduce(gradients, layout);
      one_level.reduce(means, layout);
      for (const std::vector<float>& one : gradients) {
        ASSERT_TRUE(testing::same_bits(one, means[0])) << ranks << "/" << members << ", " << step;
      }
      for (int g = 0; g < ranks / members; ++g) {
        ASSERT_EQ(memories_of(two_levels, g * members, members), memories_of(one_level, g, 1));
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Methods, Grouped,
                         ::testing::Values("dense", "half", "half,values=bf16", "scalecom",
                                           "scalecom,beta=1,warmup=2", "scalecom,select=chunk:70",
                                           "scalecom,select=random", "scalecom,check=conserve"));

class GroupTraffic : public ::testing::TestWithParam<std::string> {};

TEST_P(GroupTraffic, EqualsTheFormula) {
  const layout::Layout layout = model();
  for (const auto& [ranks, members] : {std::pair(4, 2), {6, 3}, {5, 1}, {3, 3}}) {
    World world(ranks, core::concat(GetParam(), ",groups=", members));
    std::mt19937 random(8);
    for (int step = 0; step < 3; ++step) {
      Gradients gradients = testing::normal(ranks, layout.elements(), random);
      std::vector<LevelTraffic> before;
      for (int r = 0; r < ranks; ++r) before.push_back(world.method(r).level_traffic());
      world.reduce(gradients, layout);
      if (step == 0) continue;  // in which the ranks also agree on what they do
      for (int r = 0; r < ranks; ++r) {
        const LevelTraffic now = world.method(r).level_traffic();
        const LevelTraffic formula = world.method(r).level_cost(layout, ranks, r, step);
        comm::Counters inside = now.inside - before[static_cast<std::size_t>(r)].inside;
        const comm::Counters between = now.between - before[static_cast<std::size_t>(r)].between;
        EXPECT_EQ(inside, formula.inside) << r << " of " << ranks;
        EXPECT_EQ(between, formula.between) << r << " of " << ranks;
        EXPECT_EQ(inside += between, world.method(r).cost(layout, ranks, r, step));
      }
    }
  }
}

// Among them those whose sets or rounding are divided among ranks, and so not those of one level.
INSTANTIATE_TEST_SUITE_P(Methods, GroupTraffic,
                         ::testing::Values("dense", "half", "scalecom", "scalecom,values=bf16",
                                           "scalecom,warmup=2", "scalecom,select=random",
                                           "scalecom,leaders=sharded", "scalecom,check=conserve"));

std::int64_t memory_elements(World& world, int rank) {
  std::int64_t elements = 0;
  for (const NamedMemory& memory : world.method(rank).memories()) {
    elements += static_cast<std::int64_t>(memory.values.size());
  }
  return elements;
}

TEST(Groups, AMemberKeepsItsShareAndSendsItsShareBetweenThem) {
  const layout::Layout layout({{"w", 0, 80000, 100, {800, 100}}});
  World two_levels(8, "scalecom,groups=4");
  World one_level(2, "scalecom");
  std::mt19937 random(9);
  for (int step = 0; step < 3; ++step) {
    Gradients gradients = testing::normal(8, 80000, random);
    Gradients means = group_means(gradients, 4);
    two_levels.reduce(gradients, layout);
    one_level.reduce(means, layout);
  }
  std::int64_t between = 0;
  for (int r = 0; r < 4; ++r) {
    EXPECT_EQ(memory_elements(two_levels, r), 20000);
    between += two_levels.method(r).cost(layout, 8, r, 1)[comm::Call::kBroadcast].sent;
  }
  EXPECT_EQ(memory_elements(one_level, 0), 80000);
  const std::int64_t alone = one_level.method(0).cost(layout, 2, 0, 1)[comm::Call::kBroadcast].sent;
  EXPECT_NEAR(static_cast<double>(between), static_cast<double>(alone), 16);
}

TEST(Groups, WhatIsNotFiniteAnywhereIsNaNEverywhereAndNotRemembered) {
  const layout::Layout layout = model();
  for (const int bad_rank : {0, 3}) {
    for (const std::size_t element : {std::size_t{2}, std::size_t{40}, std::size_t{1500}}) {
      World world(4, "scalecom,beta=1,groups=2");
      std::mt19937 random(10);
      Gradients gradients = testing::integers(4, layout.elements(), 9, random);
      world.reduce(gradients, layout);
      auto expected = memories_of(world, 0, 2);
      gradients = testing::integers(4, layout.elements(), 9, random);
      const Gradients means = group_means(gradients, 2);
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
        const std::vector<float> now = memories_of(world, 0, 2)[name];
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

// Whole tensors are restored at every member, of which one holds the only part of a short one.
TEST(Groups, MembersForgetTensorsThatOthersHold) {
  const layout::Layout layout({{"short", 0, 10, 10, {10}}, {"long", 10, 40, 10, {40}}});
  World world(4, "scalecom,beta=1,groups=2");
  Gradients gradients(4, std::vector<float>(50, 1.0F));
  for (int restores = 0; restores < 2; ++restores) {
    for (int rank = 0; rank < 4; ++rank) {
      Memories memories;
      for (const auto& [name, elements] : {std::pair("short", 10), {"long", 40}}) {
        core::AlignedArray<float> memory(elements);
        std::fill(memory.begin(), memory.end(), 3.0F);
        memories.emplace(name, std::move(memory));
      }
      world.method(rank).restore(5, std::move(memories));
    }
    world.reduce(gradients, layout);
    for (const int first : {0, 2}) {
      int holders = 0;
      for (int rank = first; rank < first + 2; ++rank) {
        for (const NamedMemory& memory : world.method(rank).memories()) {
          holders += memory.name == "short" ? 1 : 0;
          EXPECT_NE(memory.name, "long") << "each has its part";
        }
      }
      EXPECT_EQ(holders, 1);
    }
  }
}

TEST(Groups, BucketsMayChange) {
  const layout::Layout whole = model();
  const std::vector<layout::Slice> slices(whole.slices().begin(), whole.slices().end());
  layout::Slice conv = slices[1];
  layout::Slice fc = slices[5];
  conv.offset = fc.offset = 0;
  const layout::Layout only_conv({conv});
  const layout::Layout only_fc({fc});
  World together(4, "scalecom,groups=2");
  World apart(4, "scalecom,groups=2");
  std::mt19937 random(11);
  for (int step = 0; step < 4; ++step) {
    Gradients gradients = testing::integers(4, whole.elements(), 20, random);
    Gradients of_conv, of_fc;
    for (const std::vector<float>& one : gradients) {
      of_conv.emplace_back(one.begin() + 30, one.begin() + 1047);
      of_fc.emplace_back(one.begin() + 1055, one.end());
    }
    together.reduce(gradients, whole);
    if (step == 2) {  // as DDP's first step has other buckets than the rest
      Gradients other(4);
      for (std::size_t r = 0; r < 4; ++r) {
        other[r] = of_fc[r];
        other[r].insert(other[r].end(), of_conv[r].begin(), of_conv[r].end());
      }
      conv.offset = 530;
      apart.reduce(other, layout::Layout({fc, conv}));
      for (std::size_t r = 0; r < 4; ++r) {
        of_fc[r].assign(other[r].begin(), other[r].begin() + 530);
        of_conv[r].assign(other[r].begin() + 530, other[r].end());
      }
    } else {
      apart.reduce(of_fc, only_fc);
      apart.reduce(of_conv, only_conv);
    }
    const std::vector<float> conv_of_whole(gradients[0].begin() + 30, gradients[0].begin() + 1047);
    const std::vector<float> fc_of_whole(gradients[0].begin() + 1055, gradients[0].end());
    EXPECT_TRUE(testing::same_bits(of_conv[3], conv_of_whole)) << step;
    EXPECT_TRUE(testing::same_bits(of_fc[0], fc_of_whole)) << step;
  }
}

TEST(Groups, FollowALossScale) {
  const layout::Layout layout = model();
  World scaled(4, "scalecom,groups=2");
  World plain(4, "scalecom,groups=2");
  std::mt19937 random(12);
  for (const float scale : {8.0F, 8.0F, 16.0F, 16.0F}) {
    Gradients gradients = testing::integers(4, layout.elements(), 20, random);
    Gradients larger = gradients;
    for (auto& one : larger) {
      for (float& value : one) value *= scale;
    }
    scaled.follow_scale(scale);
    scaled.reduce(larger, layout);
    plain.reduce(gradients, layout);
    for (float& value : larger[2]) value /= scale;
    EXPECT_TRUE(testing::same_bits(larger[2], gradients[2])) << scale;
  }
}

TEST(Groups, SixteenBitGradients) {
  const layout::Layout layout({{"w", 0, 1000, 10, {1000}}});
  World world(4, "scalecom,beta=1,groups=2");
  std::mt19937 random(13);
  const Gradients numbers = testing::integers(4, 1000, 9, random);
  std::vector<std::vector<std::uint16_t>> bits(4);
  for (std::size_t r = 0; r < 4; ++r) {
    for (const float value : numbers[r]) {
      bits[r].push_back(core::to_bits16(core::DType::kBFloat16, value));
    }
  }
  world.run([&](int rank) {
    auto& mine = bits[static_cast<std::size_t>(rank)];
    world.reduce_at(rank, {mine.data(), 1000, core::DType::kBFloat16}, layout);
  });
  World one_level(2, "scalecom,beta=1");
  Gradients means = group_means(numbers, 2);
  one_level.reduce(means, layout);
  for (std::size_t i = 0; i < 1000; ++i) {
    EXPECT_EQ(core::from_bits16(core::DType::kBFloat16, bits[3][i]),
              core::round_to(core::DType::kBFloat16, means[0][i]));
  }
}

TEST(Groups, OfOneHost) {
  const layout::Layout layout({{"w", 0, 100, 1, {100}}});
  World world(3, "dense,groups=node");
  Gradients gradients(3, std::vector<float>(100, 1.0F));
  gradients[1].assign(100, 4.0F);
  world.reduce(gradients, layout);
  EXPECT_FLOAT_EQ(gradients[2][99], 2.0F);
  EXPECT_EQ(world.method(0).level_traffic().between.total(), comm::Traffic()) << "there is one";
}

std::string refusal(const std::function<void()>& body) {
  try {
    body();
  } catch (const core::UsageError& error) {
    return error.what();
  }
  return "";
}

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
        refusal([&] { world.method(rank).learner(world.end(rank)); });
  });
  for (const int rank : {0, 1}) {
    EXPECT_NE(errors[static_cast<std::size_t>(rank)].find("there are 2, 1;"), std::string::npos)
        << errors[static_cast<std::size_t>(rank)];
  }
}

TEST(Groups, WhatCannotBeIsRefusedAtEveryRank) {
  EXPECT_NE(refusal([] { make("scalecom,groups=0"); }).find("groups=0 is not allowed"),
            std::string::npos);
  EXPECT_NE(refusal([] { make("dense,groups=host"); }).find("node |"), std::string::npos);
  EXPECT_NE(refusal([] { make("scalecom,select=exact,groups=2"); }).find("whole bucket"),
            std::string::npos);
  const layout::Layout layout({{"w", 0, 100, 10, {100}}});
  World world(5, "scalecom,groups=2");
  std::vector<std::string> errors(5);
  world.run([&](int rank) {
    std::vector<float> gradient(100, 1.0F);
    errors[static_cast<std::size_t>(rank)] =
        refusal([&] { world.reduce_at(rank, core::Buffer::of(gradient.data(), 100), layout); });
  });
  for (const std::string& error : errors) {
    EXPECT_EQ(error, "[groups] 5 ranks do not divide into groups of 2");
  }
  EXPECT_EQ(world.method(0).steps(), 0);
  World fine(2, "scalecom,groups=2");
  EXPECT_NE(refusal([&] { fine.method(0).configure("groups=1"); }).find("keeps its groups"),
            std::string::npos);
  EXPECT_NE(fine.method(0).spec().find(",groups=2"), std::string::npos);
  EXPECT_EQ(make(fine.method(0).spec())->spec(), fine.method(0).spec());
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
    errors[static_cast<std::size_t>(rank)] =
        refusal([&] { world.reduce_at(rank, core::Buffer::of(gradient.data(), 100), layout); });
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

// Its memory, kept by one member as a whole, would be saved as that of a part of "w", and loaded
// so.
TEST(Groups, ATensorNamedAsAPartOfAnotherIsRefused) {
  const layout::Layout layout({{"w[0:5]", 0, 5, 5, {5}}});
  World world(2, "scalecom,rate=5,groups=2");
  std::vector<std::string> errors(2);
  world.run([&](int rank) {
    std::vector<float> gradient(5, 1.0F);
    errors[static_cast<std::size_t>(rank)] =
        refusal([&] { world.reduce_at(rank, core::Buffer::of(gradient.data(), 5), layout); });
  });
  EXPECT_NE(errors[0].find("'w[0:5]'"), std::string::npos) << errors[0];
  EXPECT_EQ(errors[0], errors[1]);
}

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

// What one member cannot begin, as its memory is of another tensor, no rank begins: none waits.
TEST(Grouped, EveryRankHearsWhatOneCannotBegin) {
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

// The steps of a replayed graph are the members' too.
TEST(Grouped, AReplayedStepIsTakenBack) {
  const layout::Layout layout({{"conv", 0, 1017, 10, {9, 113}}});
  const auto undone = [&](int replays) {
    World world(4, "scalecom,beta=1,groups=2");
    std::mt19937 random(3);
    Gradients gradients = testing::integers(4, 1017, 100, random);
    world.reduce(gradients, layout);
    const auto sent = memories_of(world, 0, 2);
    for (int rank = 0; rank < 4; ++rank) {
      if (replays > 0) world.method(rank).replayed(1 + replays);
      world.method(rank).undo();
    }
    EXPECT_NE(memories_of(world, 0, 2), sent);
    return memories_of(world, 0, 2);
  };
  EXPECT_EQ(undone(4), undone(0));
}

// A member that had no part in the last step has nothing to take back of it.
TEST(Grouped, UndoIsOfTheLastStepAlone) {
  World world(4, "scalecom,beta=1,groups=2");
  const layout::Layout most({{"conv", 0, 1017, 10, {9, 113}}});
  const layout::Layout one({{"one", 0, 1, 1, {1}}});
  std::mt19937 random(3);
  Gradients gradients = testing::integers(4, 1017, 100, random);
  Gradients small = testing::integers(4, 1, 100, random);
  world.reduce(gradients, most);
  world.reduce(small, one);
  const auto before = memories_of(world, 0, 2);
  world.reduce(small, one);  // comes again: a step of its own
  for (int rank = 0; rank < 4; ++rank) world.method(rank).undo();
  EXPECT_EQ(memories_of(world, 0, 2), before);
  // A scale that falls has skipped the step of the one element; the memories follow it.
  world.follow_scale(4);
  world.reduce(small, one);
  world.follow_scale(2);
  auto halved = before;
  for (auto& [name, values] : halved) {
    for (float& value : values) value /= 2;
  }
  EXPECT_EQ(memories_of(world, 0, 2), halved);
}

// Parts are cut where the first rate wants them: another one must not have memories move.
TEST(Grouped, OtherRatesLeavePartsWhereTheyAre) {
  World world(4, "scalecom,beta=1,groups=2,check=conserve");
  const auto at_rate = [](double rate) {
    return layout::Layout({{"w", 0, 1000, rate, {10, 100}}, {"b", 1000, 40, 1, {40}}});
  };
  std::mt19937 random(3);
  for (const double rate : {100.0, 200.0, 7.0, 1.0, 30.0}) {
    for (int rank = 0; rank < 4; ++rank) {
      world.method(rank).configure(core::concat("rate=", static_cast<int>(rate)));
    }
    const layout::Layout layout = at_rate(rate);
    for (int step = 0; step < 3; ++step) {
      Gradients gradients = testing::integers(4, layout.elements(), 100, random);
      const auto before = memories_of(world, 0, 2);
      const auto other = memories_of(world, 2, 2);
      std::vector<float> due(1000);
      for (std::size_t i = 0; i < due.size(); ++i) {
        for (const std::vector<float>& one : gradients) due[i] += one[i] / 4;
        if (before.contains("w")) due[i] += (before.at("w")[i] + other.at("w")[i]) / 2;
      }
      world.reduce(gradients, layout);
      const auto after = memories_of(world, 0, 2);
      const auto other_after = memories_of(world, 2, 2);
      for (std::size_t i = 0; i < due.size(); ++i) {
        float left = 0;
        if (after.contains("w")) left = (after.at("w")[i] + other_after.at("w")[i]) / 2;
        ASSERT_EQ(gradients[0][i] + left, due[i]) << "rate " << rate << ", element " << i;
      }
    }
  }
}

// Whole tensors are restored, and a rank that is new has never seen the first rate.
TEST(Grouped, ARestoreCutsPartsAnew) {
  const auto at_rate = [](double rate) {
    return layout::Layout({{"w", 0, 1000, rate, {10, 100}}});
  };
  World world(2, "scalecom,rate=100,groups=2");
  Gradients gradients(2, std::vector<float>(1000, 1.0F));
  world.reduce(gradients, at_rate(100));
  const auto fresh = make("scalecom,rate=7,groups=2")->cost(at_rate(7), 2, 0, 0);
  Method& method = world.method(0);
  method.configure("rate=7");
  EXPECT_NE(method.cost(at_rate(7), 2, 0, 0), fresh) << "parts of memories stay where they are";
  method.restore(0, {});
  EXPECT_EQ(method.cost(at_rate(7), 2, 0, 0), fresh);
}

// A member without a share of some steps counts them all the same.
TEST(Grouped, AWarmUpEndsForAllMembersAtOnce) {
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
    const auto before = memories_of(world, 0, 2);
    const auto other = memories_of(world, 2, 2);
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
    const auto after = memories_of(world, 0, 2);
    const auto other_after = memories_of(world, 2, 2);
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
TEST(Grouped, UndoTakesBackOneStepAtAMemberWithoutAShare) {
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
  const auto before = memories_of(world, 0, 2);
  bring(unused);
  for (int rank = 0; rank < world.size(); ++rank) world.method(rank).undo();
  EXPECT_TRUE(testing::same_bits(memories_of(world, 0, 2).at("b"), before.at("b")));
}

}  // namespace
}  // namespace scalecom::methods
