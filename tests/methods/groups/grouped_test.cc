#include "scalecom/methods/groups/grouped.h"

#include <gtest/gtest.h>

#include "scalecom/core/text.h"
#include "tests/methods/groups/two_levels.h"

// Groups of ranks are learners: what comes out, what is remembered and what crosses between them is
// that of the method with one rank a group, on the groups' means.
namespace scalecom::methods {
namespace {

using testing::Gradients;
using testing::World;

class Grouped : public ::testing::TestWithParam<std::string> {};

TEST_P(Grouped, AreLearners) {
  const layout::Layout layout = testing::grouped_model();
  for (const auto& [ranks, members] : {std::pair(4, 2), {8, 4}, {6, 2}, {2, 2}, {3, 1}}) {
    World two_levels(ranks, core::concat(GetParam(), ",groups=", members));
    World one_level(ranks / members, GetParam());
    std::mt19937 random(7);
    for (int step = 0; step < 5; ++step) {
      Gradients gradients = testing::integers(ranks, layout.elements(), 50, random);
      Gradients means = testing::group_means(gradients, members);
      two_levels.reduce(gradients, layout);
      one_level.reduce(means, layout);
      for (const std::vector<float>& one : gradients) {
        ASSERT_TRUE(testing::same_bits(one, means[0])) << ranks << "/" << members << ", " << step;
      }
      for (int g = 0; g < ranks / members; ++g) {
        ASSERT_EQ(testing::memories_of(two_levels, g * members, members),
                  testing::memories_of(one_level, g, 1));
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
  const layout::Layout layout = testing::grouped_model();
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
    Gradients means = testing::group_means(gradients, 4);
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
  const layout::Layout whole = testing::grouped_model();
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
  const layout::Layout layout = testing::grouped_model();
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
  Gradients means = testing::group_means(numbers, 2);
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

// Parts are cut where the first rate wants them: another one must not have memories move.
TEST(Groups, OtherRatesLeavePartsWhereTheyAre) {
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
      const auto before = testing::memories_of(world, 0, 2);
      const auto other = testing::memories_of(world, 2, 2);
      std::vector<float> due(1000);
      for (std::size_t i = 0; i < due.size(); ++i) {
        for (const std::vector<float>& one : gradients) due[i] += one[i] / 4;
        if (before.contains("w")) due[i] += (before.at("w")[i] + other.at("w")[i]) / 2;
      }
      world.reduce(gradients, layout);
      const auto after = testing::memories_of(world, 0, 2);
      const auto other_after = testing::memories_of(world, 2, 2);
      for (std::size_t i = 0; i < due.size(); ++i) {
        float left = 0;
        if (after.contains("w")) left = (after.at("w")[i] + other_after.at("w")[i]) / 2;
        ASSERT_EQ(gradients[0][i] + left, due[i]) << "rate " << rate << ", element " << i;
      }
    }
  }
}

// Whole tensors are restored, and a rank that is new has never seen the first rate.
TEST(Groups, ARestoreCutsPartsAnew) {
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

}  // namespace
}  // namespace scalecom::methods
