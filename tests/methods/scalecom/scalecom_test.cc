#include "scalecom/methods/scalecom/scalecom.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "scalecom/core/error.h"
#include "tests/methods/plain_scalecom.h"
#include "tests/methods/ranks.h"

namespace scalecom::methods {
namespace {

using testing::Gradients;
using testing::layout_of;
using testing::PlainScaleCom;
using testing::same_bits;
using testing::World;

std::vector<float> memory_of(World& world, int rank, const std::string& name) {
  for (const NamedMemory& memory : world.method(rank).memories()) {
    if (memory.name == name) return {memory.values.begin(), memory.values.end()};
  }
  return {};
}

// Every kind of slice: dense, tiny, longer and shorter than its chunk, with and without a tail.
layout::Layout mixed_layout() {
  return layout_of({{13, 1}, {1000, 10}, {1, 1}, {0, 7}, {777, 25}, {99, 100}, {3, 2}, {2500, 16}});
}

struct Case {
  std::string spec;
  PlainScaleCom::Rules rules;
};

class AgainstPlain : public ::testing::TestWithParam<Case> {};

// Results and memories, bit for bit, over steps in which every rank leads more than once.
TEST_P(AgainstPlain, SameBits) {
  const layout::Layout layout = mixed_layout();
  std::mt19937 random(11);
  for (const int size : {1, 2, 3, 5, 8}) {
    World world(size, GetParam().spec);
    PlainScaleCom plain(size, GetParam().rules, layout);
    for (int step = 0; step < 2 * size + 3; ++step) {
      Gradients gradients = testing::normal(size, layout.elements(), random);
      // Ties and zeros of both signs.
      for (auto& one : gradients) {
        for (std::size_t i = 20; i < one.size(); i += 9) one[i] = one[i - 1];
        for (std::size_t i = 30; i < one.size(); i += 11) one[i] = i % 2 == 0 ? 0.0F : -0.0F;
      }
      const std::vector<float> expected = plain.step(gradients);
      world.reduce(gradients, layout);
      for (int r = 0; r < size; ++r) {
        const auto at = static_cast<std::size_t>(r);
        ASSERT_TRUE(same_bits(gradients[at], expected)) << "size " << size << " step " << step;
        for (const layout::Slice& slice : layout.slices()) {
          if (slice.dense() || slice.length == 0) continue;
          const auto begin = plain.memories()[at].begin() + slice.offset;
          ASSERT_TRUE(same_bits(memory_of(world, r, slice.name), {begin, begin + slice.length}))
              << slice.name << " size " << size << " step " << step;
        }
      }
    }
  }
}

constexpr auto kFp32 = core::DType::kFloat32;
INSTANTIATE_TEST_SUITE_P(
    EveryOption, AgainstPlain,
    ::testing::Values(
        Case{"scalecom,beta=1", {1.0F}}, Case{"scalecom,beta=0.1", {0.1F}},
        Case{"scalecom,beta=0.3,decay=0.99", {0.3F, 0.99F}},
        Case{"scalecom,beta=0.1,values=bf16", {0.1F, 1, core::DType::kBFloat16}},
        Case{"scalecom,beta=0.5,values=fp16,decay=0.9", {0.5F, 0.9F, core::DType::kFloat16}},
        Case{"scalecom,select=chunk:100", {0.1F, 1, kFp32, 100}},
        Case{"scalecom,select=chunk:64,values=bf16", {0.1F, 1, core::DType::kBFloat16, 64}},
        Case{"scalecom,select=chunk:4000", {0.1F, 1, kFp32, 4000}},
        Case{"scalecom,select=exact", {0.1F, 1, kFp32, 0, true}},
        Case{"scalecom,select=exact,values=fp16,beta=1", {1.0F, 1, core::DType::kFloat16, 0, true}},
        Case{"scalecom,leaders=sharded", {0.1F, 1, kFp32, 0, false, true}},
        Case{"scalecom,leaders=sharded,values=bf16",
             {0.1F, 1, core::DType::kBFloat16, 0, false, true}},
        Case{"scalecom,leaders=sharded,select=chunk:50", {0.1F, 1, kFp32, 50, false, true}}),
    [](const auto& info) {
      std::string name = info.param.spec;
      for (char& c : name) c = std::isalnum(static_cast<unsigned char>(c)) != 0 ? c : '_';
      return name;
    });

// compress(mean(x)) = mean(compress(x)): on whole numbers and a power-of-two world, exactly.
TEST(ScaleCom, CompressionCommutesWithTheMean) {
  std::mt19937 random(5);
  const layout::Layout layout = layout_of({{5000, 50}, {3000, 20}});
  for (const std::string spec :
       {"scalecom,beta=1", "scalecom,beta=1,select=chunk:500", "scalecom,beta=1,select=exact",
        "scalecom,beta=1,select=random", "scalecom,beta=1,leaders=sharded"}) {
    World world(4, spec);
    Gradients gradients = testing::integers(4, layout.elements(), 1000, random);
    const Gradients before = gradients;
    world.reduce(gradients, layout);
    std::int64_t sent = 0;
    for (std::size_t i = 0; i < gradients[0].size(); ++i) {
      const float mean = (before[0][i] + before[1][i] + before[2][i] + before[3][i]) / 4;
      const float result = gradients[0][i];
      if (result != 0) ++sent;
      EXPECT_TRUE(result == mean || result == 0) << spec << " at " << i;
    }
    EXPECT_GT(sent, 200) << spec;  // 250 are, less those whose mean happens to be 0
  }
}

// The set is the leader's: the largest of its chunks, whoever that is.
TEST(ScaleCom, TheLeaderTurns) {
  const layout::Layout layout = layout_of({{100, 10}});
  World world(3, "scalecom,beta=1");
  for (int step = 0; step < 7; ++step) {
    Gradients gradients(3, std::vector<float>(100, 0.0F));
    for (std::size_t rank = 0; rank < 3; ++rank) {
      for (std::size_t c = 0; c < 10; ++c) gradients[rank][c * 10 + rank] = 1000.0F;
    }
    world.reduce(gradients, layout);
    // Only the leader's own choice is certain: its entries of this step are the largest it has,
    // unless an older one of its memory is larger.
    const auto leader = static_cast<std::size_t>(step % 3);
    std::size_t sent = 0;
    for (std::size_t i = 0; i < 100; ++i) sent += gradients[0][i] != 0 ? 1 : 0;
    EXPECT_EQ(sent, 10U);
    if (step < 3) {
      for (std::size_t c = 0; c < 10; ++c) {
        EXPECT_NE(gradients[0][c * 10 + leader], 0.0F) << "step " << step;
      }
    }
  }
}

// As where ranks have left, or others have come: the chunks are divided among more or fewer.
TEST(ScaleCom, OtherRanksMayShareTheLead) {
  const layout::Layout layout = layout_of({{5003, 10}, {20, 1}});
  std::mt19937 random(12);
  for (const bool grows : {false, true}) {
    World world(4, "scalecom,leaders=sharded");
    World fresh(4, "scalecom,leaders=sharded");
    Gradients nothing(4, std::vector<float>(5023, 0.0F));
    Gradients gradients = testing::normal(4, 5023, random);
    Gradients expected = gradients;
    const auto reduce = [&](World& all, int rank, std::vector<float>& mine, bool halves) {
      const auto group = all.end(rank).split(halves ? rank / 2 : 0, rank);
      all.method(rank).reduce(core::Buffer::of(mine.data(), 5023), layout, *group);
    };
    world.run([&](int rank) {
      const auto at = static_cast<std::size_t>(rank);
      reduce(world, rank, nothing[at], grows);
      reduce(world, rank, gradients[at], !grows);
      fresh.method(rank).restore(1, {});
      reduce(fresh, rank, expected[at], !grows);
    });
    for (std::size_t rank = 0; rank < 4; ++rank) {
      EXPECT_TRUE(testing::same_bits(gradients[rank], expected[rank])) << rank;
    }
  }
}

TEST(ScaleCom, RandomSetsAreSharedEvenAndNew) {
  const layout::Layout layout = layout_of({{10000, 10}});
  World world(2, "scalecom,select=random,beta=1");
  World other_seed(2, "scalecom,select=random,beta=1,seed=1");
  std::vector<int> drawn(10, 0);
  std::set<std::size_t> first_positions;
  for (int step = 0; step < 20; ++step) {
    Gradients gradients(2, std::vector<float>(10000, 1.0F));
    Gradients others = gradients;
    world.reduce(gradients, layout);
    other_seed.reduce(others, layout);
    EXPECT_TRUE(same_bits(gradients[0], gradients[1]));
    EXPECT_FALSE(same_bits(gradients[0], others[0]));
    for (std::size_t chunk = 0; chunk < 1000; ++chunk) {
      int sent = 0;
      for (std::size_t i = 0; i < 10; ++i) {
        if (gradients[0][chunk * 10 + i] == 0) continue;
        ++sent;
        ++drawn[i];
        if (chunk == 0) first_positions.insert(i);
      }
      ASSERT_EQ(sent, 1);
    }
  }
  for (const int count : drawn) EXPECT_NEAR(count, 2000, 250);
  EXPECT_GT(first_positions.size(), 4U) << "a new draw each step";
}

// A rate may be larger than its tensor: then one value is sent.
TEST(ScaleCom, AnyFiniteRateWorks) {
  for (const double rate : {33.0, 1e6, 0x1p32, 0x1p40, 0x1p60, 1e300}) {
    for (const std::string spec :
         {"scalecom,beta=1", "scalecom,beta=1,leaders=sharded", "scalecom,beta=1,select=chunk:7",
          "scalecom,beta=1,select=exact", "scalecom,beta=1,select=random"}) {
      World world(3, spec);
      Gradients gradients(3, std::vector<float>(32, 1.0F));
      for (auto& one : gradients) one[5] = 3.0F;
      world.reduce(gradients, layout_of({{32, rate}}));
      EXPECT_TRUE(same_bits(gradients[0], gradients[2]));
      const auto sent =
          std::count_if(gradients[0].begin(), gradients[0].end(), [](float x) { return x != 0; });
      EXPECT_EQ(sent, spec.find("chunk:7") != std::string::npos ? 5 : 1) << spec << " " << rate;
    }
  }
}

TEST(ScaleCom, WarmUpIsDense) {
  std::mt19937 random(6);
  const layout::Layout layout = mixed_layout();
  World warm(3, "scalecom,warmup=2");
  World dense(3, "dense");
  for (int step = 0; step < 3; ++step) {
    Gradients a = testing::normal(3, layout.elements(), random);
    Gradients b = a;
    warm.reduce(a, layout);
    dense.reduce(b, layout);
    EXPECT_EQ(same_bits(a[0], b[0]), step < 2) << step;
    EXPECT_EQ(warm.method(0).memories().empty(), step < 2);
  }
}

// Buckets may be cut anew between any two steps; what is remembered belongs to the tensors.
TEST(ScaleCom, NewBucketsChangeNothing) {
  std::mt19937 random(7);
  const auto slices = [](std::vector<std::pair<std::string, std::int64_t>> list) {
    std::vector<layout::Slice> all;
    std::int64_t offset = 0;
    for (const auto& [name, length] : list) {
      all.push_back({name, offset, length, 10});
      offset += length;
    }
    return layout::Layout(std::move(all));
  };
  const layout::Layout whole = slices({{"x", 500}, {"y", 700}, {"z", 333}});
  const layout::Layout zx = slices({{"z", 333}, {"x", 500}});
  const layout::Layout y = slices({{"y", 700}});
  World one(3, "scalecom");
  World many(3, "scalecom");
  for (int step = 0; step < 9; ++step) {
    Gradients gradients = testing::normal(3, 1533, random);
    Gradients first(3), second(3);
    for (std::size_t r = 0; r < 3; ++r) {
      const std::vector<float>& g = gradients[r];
      first[r].assign(g.begin() + 1200, g.end());
      first[r].insert(first[r].end(), g.begin(), g.begin() + 500);
      second[r].assign(g.begin() + 500, g.begin() + 1200);
    }
    one.reduce(gradients, whole);
    if (step % 3 == 1) {
      Gradients all(3);
      for (std::size_t r = 0; r < 3; ++r) {
        all[r].assign(first[r].begin() + 333, first[r].end());
        all[r].insert(all[r].end(), second[r].begin(), second[r].end());
        all[r].insert(all[r].end(), first[r].begin(), first[r].begin() + 333);
      }
      many.reduce(all, whole);
      EXPECT_TRUE(same_bits(all[2], gradients[2]));
    } else {
      many.reduce(first, zx);
      many.reduce(second, y);
      EXPECT_TRUE(std::equal(second[1].begin(), second[1].end(), gradients[1].begin() + 500));
      EXPECT_TRUE(std::equal(first[1].begin() + 333, first[1].end(), gradients[1].begin()));
      EXPECT_TRUE(
          std::equal(first[1].begin(), first[1].begin() + 333, gradients[1].begin() + 1200));
    }
  }
  for (const std::string name : {"x", "y", "z"}) {
    EXPECT_TRUE(same_bits(memory_of(one, 1, name), memory_of(many, 1, name)));
  }
}

TEST(ScaleCom, SixteenBitGradientsKeepAnFp32Memory) {
  std::mt19937 random(8);
  const layout::Layout layout = mixed_layout();
  for (const core::DType type : {core::DType::kFloat16, core::DType::kBFloat16}) {
    World narrow(3, "scalecom");
    World wide(3, "scalecom");
    for (int step = 0; step < 8; ++step) {
      Gradients gradients = testing::normal(3, layout.elements(), random);
      std::vector<std::vector<std::uint16_t>> bits(3);
      for (std::size_t r = 0; r < 3; ++r) {
        for (float& value : gradients[r]) {
          value = core::round_to(type, value);
          bits[r].push_back(core::to_bits16(type, value));
        }
      }
      wide.reduce(gradients, layout);
      narrow.run([&](int rank) {
        narrow.reduce_at(
            rank, {bits[static_cast<std::size_t>(rank)].data(), layout.elements(), type}, layout);
      });
      for (std::size_t i = 0; i < bits[0].size(); ++i) {
        ASSERT_EQ(bits[0][i], core::to_bits16(type, gradients[0][i])) << i;
        ASSERT_EQ(bits[0][i], bits[2][i]);
      }
    }
    EXPECT_TRUE(same_bits(memory_of(narrow, 2, "b"), memory_of(wide, 2, "b")));
  }
}

TEST(ScaleCom, ChangingBetaKeepsWhatIsStillToBeSent) {
  std::mt19937 random(9);
  const layout::Layout layout = layout_of({{1000, 10}});
  World world(2, "scalecom,beta=0.5");
  Gradients gradients = testing::normal(2, 1000, random);
  world.reduce(gradients, layout);
  const std::vector<float> before = memory_of(world, 0, "a");
  EXPECT_THROW(world.method(0).configure("beta=0.25,rate=0"), core::UsageError);
  EXPECT_TRUE(same_bits(memory_of(world, 0, "a"), before));
  for (int r = 0; r < 2; ++r) world.method(r).configure("beta=0.25");
  const std::vector<float> after = memory_of(world, 0, "a");
  for (std::size_t i = 0; i < 1000; ++i) EXPECT_EQ(after[i], before[i] * 0.5F);
  EXPECT_NE(world.method(0).spec().find("beta=0.25"), std::string::npos);
  gradients = testing::normal(2, 1000, random);
  world.reduce(gradients, layout);
  EXPECT_TRUE(same_bits(gradients[0], gradients[1]));
}

TEST(ScaleCom, MemoriesFollowTheUnitsOfGradients) {
  std::mt19937 random(19);
  const layout::Layout layout = mixed_layout();
  World plain(2, "scalecom,check=conserve");
  World scaled(2, "scalecom,check=conserve");
  float scale = 1;
  for (int step = 0; step < 6; ++step) {
    if (step == 3) {
      // Powers of two, so that every bit but the exponents stays.
      scale = 64;
      for (int r = 0; r < 2; ++r) scaled.method(r).rescale(64);
      for (int r = 0; r < 2; ++r) scaled.method(r).undo();  // nothing to take back any more
    }
    EXPECT_TRUE(plain.method(0).begins_step(layout));
    Gradients gradients = testing::normal(2, layout.elements(), random);
    Gradients larger = gradients;
    for (auto& one : larger) {
      for (float& value : one) value *= scale;
    }
    plain.reduce(gradients, layout);
    scaled.reduce(larger, layout);
    for (float& value : larger[1]) value /= scale;
    EXPECT_TRUE(same_bits(larger[1], gradients[1])) << step;
  }
  EXPECT_FALSE(plain.method(0).begins_step(layout::Layout({{"another", 0, 5, 1}})));
}

TEST(ScaleCom, MemoriesSaveAndRestore) {
  std::mt19937 random(10);
  const layout::Layout layout = mixed_layout();
  World original(3, "scalecom,leaders=sharded");
  for (int step = 0; step < 5; ++step) {
    Gradients gradients = testing::normal(3, layout.elements(), random);
    original.reduce(gradients, layout);
  }
  World restored(3, "scalecom,leaders=sharded");
  for (int r = 0; r < 3; ++r) {
    Memories copies;
    for (const NamedMemory& memory : original.method(r).memories()) {
      core::AlignedArray<float> copy(static_cast<std::int64_t>(memory.values.size()));
      std::copy(memory.values.begin(), memory.values.end(), copy.begin());
      copies.emplace(memory.name, std::move(copy));
    }
    restored.method(r).restore(original.method(r).steps(), std::move(copies));
  }
  for (int step = 0; step < 5; ++step) {
    Gradients a = testing::normal(3, layout.elements(), random);
    Gradients b = a;
    original.reduce(a, layout);
    restored.reduce(b, layout);
    EXPECT_TRUE(same_bits(a[1], b[1]));
  }
}

}  // namespace
}  // namespace scalecom::methods
