#include "scalecom/methods/sparse/method.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <functional>
#include <limits>

#include "scalecom/core/error.h"
#include "tests/device.h"
#include "tests/methods/sparse/worlds.h"

// What holds for every method whose ranks choose for themselves.
namespace scalecom::methods {
namespace {

using testing::Gradients;
using testing::layout_of;
using testing::memories_of;
using testing::memory_of;
using testing::same_bits;
using testing::World;

bool runs_here(const std::string& spec) {
  return !::scalecom::testing::device().is_cuda() || !spec.starts_with("gtopk");
}

std::vector<std::string> only_those_that_run_here(std::vector<std::string> all) {
  std::erase_if(all, [](const std::string& spec) { return !runs_here(spec); });
  return all;
}

std::vector<std::string> specs() {
  return only_those_that_run_here({"topk", "gtopk", "dgc", "dgc,nesterov=on,clip=3"});
}

// Those that add nothing to a gradient: what went in is sent, or held.
std::vector<std::string> plain_specs() {
  return only_those_that_run_here({"topk", "gtopk", "dgc,momentum=0"});
}

std::string refusal(const std::string& spec) {
  try {
    make(spec);
  } catch (const core::UsageError& error) {
    return error.what();
  }
  return "";
}

TEST(SparseOptions, MakeTheSameMethodAgain) {
  for (const std::string spec :
       {"topk,rate=92.5,rates=fc*:400;embed:dense", "gtopk,first=compressed",
        "dgc,momentum=0.5,nesterov=on,clip=0.25,warmup=100,rates=paper"}) {
    const std::string full = make(spec)->spec();
    EXPECT_EQ(make(full)->spec(), full);
    EXPECT_EQ(full.rfind(spec.substr(0, spec.find(',')), 0), 0U);
  }
  EXPECT_EQ(make("topk,rate=92.5")->rate_policy().rate, 92.5);
  EXPECT_EQ(make("dgc")->rate_policy().rate, 1000);
  auto method = make("topk,rate=50");
  method->configure("rate=20");
  EXPECT_EQ(method->rate_policy().rate, 20);
  EXPECT_THROW(method->configure("rate=0"), core::UsageError);
  EXPECT_EQ(method->rate_policy().rate, 20);
}

TEST(SparseOptions, RefusalsSayWhatIsAllowed) {
  for (const auto& [bad, allowed] : std::vector<std::pair<std::string, std::string>>{
           {"topk,rate=0.5", "rate=<a number in [1, "},
           {"topk,rate=nan", "rate=<a number in [1, "},
           {"topk,beta=1", "rates=<uniform"},
           {"topk,rates=fast", "rates=<uniform"},
           {"gtopk,rate=1e10", "rate=<a number in [1, "},
           {"gtopk,nonfinite=ignore", "nonfinite=<nan | error"},
           {"dgc,momentum=1", "momentum=<a number in [0, 0.9999]>"},
           {"dgc,momentum=-0.1", "momentum=<a number in [0, 0.9999]>"},
           {"dgc,clip=-1", "clip=<a number in [0, "},
           {"dgc,warmup=-1", "warmup=<a whole number in [0, "},
           {"dgc,nesterov=maybe", "nesterov=<off | on"}}) {
    EXPECT_NE(refusal(bad).find(allowed), std::string::npos) << bad << ": " << refusal(bad);
  }
}

TEST(Sparse, EveryRankGetsTheSameBits) {
  const layout::Layout layout = testing::mixed_layout();
  std::mt19937 random(61);
  for (const std::string& spec : specs()) {
    for (const int size : {1, 2, 3, 7}) {
      World world(size, spec);
      for (int step = 0; step < 3; ++step) {
        Gradients gradients = testing::normal(size, layout.elements(), random);
        world.reduce(gradients, layout);
        for (const auto& one : gradients) ASSERT_TRUE(same_bits(one, gradients[0])) << spec;
      }
    }
  }
}

// On whole numbers everything is exact, so the books must balance to the last unit.
TEST(Sparse, WholeNumbersAreNeverLost) {
  std::mt19937 random(62);
  const layout::Layout layout = layout_of({{3000, 30}, {50, 100}, {1111, 7}, {20, 1}});
  for (const std::string& spec : plain_specs()) {
    for (const int size : {1, 2, 3, 4, 5, 8}) {
      World world(size, spec);
      std::vector<double> in(static_cast<std::size_t>(layout.elements()), 0.0);
      std::vector<double> out = in;
      for (int step = 0; step < 60; ++step) {
        Gradients gradients = testing::integers(size, layout.elements(), 50, random);
        for (const auto& one : gradients) {
          for (std::size_t i = 0; i < in.size(); ++i) in[i] += one[i];
        }
        world.reduce(gradients, layout);
        for (std::size_t i = 0; i < in.size(); ++i) {
          out[i] += std::round(static_cast<double>(gradients[0][i]) * size);
        }
      }
      for (int rank = 0; rank < size; ++rank) {
        for (const layout::Slice& slice : layout.slices()) {
          const std::vector<float> memory = memory_of(world, rank, slice.name);
          for (std::size_t i = 0; i < memory.size(); ++i) {
            out[static_cast<std::size_t>(slice.offset) + i] += memory[i];
          }
        }
      }
      ASSERT_EQ(in, out) << spec << " size " << size;
    }
  }
}

// One bad entry, anywhere: in a compressed or a dense slice.
TEST(SparseNonFinite, SpoilsTheBucketEverywhereAndNoMemory) {
  const layout::Layout layout = layout_of({{500, 10}, {20, 1}, {300, 30}});
  std::mt19937 random(63);
  for (const std::string& spec : specs()) {
    for (const int bad_rank : {0, 1, 2}) {
      for (const std::size_t bad_entry : {0U, 499U, 510U, 555U, 819U}) {
        World world(3, spec);
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
        gradients = testing::normal(3, layout.elements(), random);
        world.reduce(gradients, layout);
        ASSERT_TRUE(std::isfinite(gradients[0][0])) << "and training can go on";
      }
    }
  }
}

TEST(SparseNonFinite, TheRestOfTheGradientStaysInTheMemory) {
  const layout::Layout layout = layout_of({{100, 10}});
  for (const std::string& spec : plain_specs()) {
    World world(2, spec);
    Gradients gradients(2, std::vector<float>(100, 2.0F));
    gradients[1][42] = INFINITY;
    world.reduce(gradients, layout);
    for (int rank = 0; rank < 2; ++rank) {
      std::vector<float> expected(100, 2.0F);
      if (rank == 1) expected[42] = 0;
      EXPECT_EQ(memory_of(world, rank, "a"), expected) << spec;
    }
  }
}

TEST(SparseNonFinite, CanBeAnErrorOnEveryRank) {
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
  }
}

TEST(SparseNonFinite, AnOverflowOfFiniteNumbersIsCaughtToo) {
  const float big = std::numeric_limits<float>::max();
  for (const std::string& spec : plain_specs()) {
    World world(1, spec);
    Gradients one(1, std::vector<float>(20, 0.0F));
    one[0][1] = big;
    one[0][2] = big * 0.9F;
    world.reduce(one, layout_of({{20, 20}}));  // [2] stays in the memory
    EXPECT_EQ(one[0][1], big);
    one.assign(1, std::vector<float>(20, 0.0F));
    one[0][2] = big;
    world.reduce(one, layout_of({{20, 20}}));  // and would overflow now
    EXPECT_TRUE(std::isnan(one[0][0])) << spec;
    EXPECT_EQ(memory_of(world, 0, "a")[2], big * 0.9F) << spec;
  }
}

// As if nothing had been sent, over all buckets of the step.
TEST(SparseUndo, LeavesWhatWasToBeSent) {
  std::mt19937 random(64);
  const layout::Layout first({{"x", 0, 500, 10}, {"d", 500, 5, 1}});
  const layout::Layout second({{"y", 0, 300, 20}});
  for (const std::string& spec : plain_specs()) {
    World world(3, spec);
    Gradients g1, g2;
    for (int step = 0; step < 4; ++step) {
      g1 = testing::normal(3, 505, random);
      g2 = testing::normal(3, 300, random);
      world.reduce(g1, first);
      world.reduce(g2, second);
    }
    std::vector<std::vector<float>> expected;
    g1 = testing::normal(3, 505, random);
    g2 = testing::normal(3, 300, random);
    for (int rank = 0; rank < 3; ++rank) {
      for (const auto& [name, in] : {std::pair("x", g1), std::pair("y", g2)}) {
        expected.push_back(memory_of(world, rank, name));
        for (std::size_t i = 0; i < expected.back().size(); ++i) {
          expected.back()[i] += in[static_cast<std::size_t>(rank)][i];
        }
      }
    }
    world.reduce(g1, first);
    world.reduce(g2, second);
    for (int times = 0; times < 2; ++times) {  // a second call changes nothing
      world.run([&](int rank) { world.method(rank).undo(); });
      for (int rank = 0; rank < 3; ++rank) {
        const auto at = static_cast<std::size_t>(2 * rank);
        EXPECT_EQ(memory_of(world, rank, "x"), expected[at]) << spec;
        EXPECT_EQ(memory_of(world, rank, "y"), expected[at + 1]) << spec;
      }
    }
  }
}

// A step that is taken back and one that is refused leave the velocities of what was sent dense.
TEST(SparseUndo, LeavesTheVelocitiesOfDgc) {
  const layout::Layout layout = layout_of({{100, 50}, {3, 1}});
  World world(2, "dgc,momentum=0.5");
  Gradients gradients(2, std::vector<float>(103, 2.0F));
  world.reduce(gradients, layout);
  gradients.assign(2, std::vector<float>(103, 6.0F));
  world.reduce(gradients, layout);
  EXPECT_EQ(memory_of(world, 1, "b/velocity"), std::vector<float>(3, 7.0F));
  world.run([&](int rank) { world.method(rank).undo(); });
  EXPECT_EQ(memory_of(world, 1, "b/velocity"), std::vector<float>(3, 2.0F));
  // The first two entries were sent in the first step, and those after them in the second.
  const std::vector<float> velocity = memory_of(world, 1, "a/velocity");
  const std::vector<float> memory = memory_of(world, 1, "a");
  EXPECT_EQ(velocity[0], 6.0F);
  EXPECT_EQ(memory[0], 6.0F);
  for (std::size_t i = 2; i < 100; ++i) {
    EXPECT_EQ(velocity[i], 7.0F) << i;
    EXPECT_EQ(memory[i], 9.0F) << i;
  }
  gradients.assign(2, std::vector<float>(103, 1.0F));
  gradients[0][101] = NAN;
  world.reduce(gradients, layout);
  EXPECT_EQ(memory_of(world, 1, "b/velocity"), std::vector<float>(3, 2.0F));
}

TEST(Sparse, NewBucketsChangeNothing) {
  std::mt19937 random(65);
  const layout::Layout whole({{"x", 0, 500, 10}, {"y", 500, 700, 10}});
  const layout::Layout x({{"x", 0, 500, 10}});
  const layout::Layout y({{"y", 0, 700, 10}});
  for (const std::string& spec : only_those_that_run_here({"topk", "gtopk", "dgc"})) {
    World one(3, spec);
    World many(3, spec);
    for (int step = 0; step < 6; ++step) {
      Gradients gradients = testing::normal(3, 1200, random);
      Gradients again = gradients;
      Gradients first(3), second(3);
      for (std::size_t r = 0; r < 3; ++r) {
        first[r].assign(gradients[r].begin(), gradients[r].begin() + 500);
        second[r].assign(gradients[r].begin() + 500, gradients[r].end());
      }
      one.reduce(gradients, whole);
      if (step % 3 == 1) {
        many.reduce(again, whole);
      } else {
        many.reduce(second, y);
        many.reduce(first, x);
        std::copy(first[0].begin(), first[0].end(), again[0].begin());
        std::copy(second[0].begin(), second[0].end(), again[0].begin() + 500);
      }
      ASSERT_TRUE(same_bits(again[0], gradients[0])) << spec << " step " << step;
    }
    EXPECT_EQ(memories_of(one), memories_of(many)) << spec;
  }
}

TEST(Sparse, SixteenBitGradientsKeepFp32Memories) {
  std::mt19937 random(66);
  const layout::Layout layout = testing::mixed_layout();
  for (const std::string& spec : specs()) {
    for (const core::DType type : {core::DType::kFloat16, core::DType::kBFloat16}) {
      World narrow(3, spec);
      World wide(3, spec);
      for (int step = 0; step < 4; ++step) {
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
          auto& mine = bits[static_cast<std::size_t>(rank)];
          narrow.reduce_at(rank, {mine.data(), layout.elements(), type}, layout);
        });
        for (std::size_t i = 0; i < bits[0].size(); ++i) {
          ASSERT_EQ(bits[0][i], core::to_bits16(type, gradients[0][i])) << spec << " " << i;
          ASSERT_EQ(bits[0][i], bits[2][i]);
        }
      }
      EXPECT_EQ(memories_of(narrow), memories_of(wide)) << spec;
    }
  }
}

TEST(Sparse, MemoriesFollowTheUnitsOfGradients) {
  std::mt19937 random(67);
  const layout::Layout layout = testing::mixed_layout();
  for (const std::string& spec : only_those_that_run_here({"topk", "gtopk", "dgc"})) {
    World plain(2, spec);
    World scaled(2, spec);
    float scale = 1;
    for (int step = 0; step < 5; ++step) {
      if (step == 2) {
        scale = 64;
        for (int rank = 0; rank < 2; ++rank) scaled.method(rank).rescale(64);
        for (int rank = 0; rank < 2; ++rank) scaled.method(rank).undo();  // nothing to take back
      }
      Gradients gradients = testing::normal(2, layout.elements(), random);
      Gradients larger = gradients;
      for (auto& one : larger) {
        for (float& value : one) value *= scale;
      }
      plain.reduce(gradients, layout);
      scaled.reduce(larger, layout);
      for (float& value : larger[1]) value /= scale;
      EXPECT_TRUE(same_bits(larger[1], gradients[1])) << spec << " " << step;
    }
  }
}

TEST(Sparse, WarmUpStepsAreDense) {
  for (const std::string& spec : only_those_that_run_here({"topk,warmup=2", "gtopk,warmup=2"})) {
    const layout::Layout layout = layout_of({{300, 10}, {40, 1}});
    std::mt19937 random(4);
    World world(2, spec);
    World dense(2, "dense");
    for (int step = 0; step < 4; ++step) {
      Gradients gradients = testing::normal(2, layout.elements(), random);
      Gradients expected = gradients;
      world.reduce(gradients, layout);
      dense.reduce(expected, layout);
      EXPECT_EQ(same_bits(gradients[0], expected[0]), step < 2) << spec << ", step " << step;
      EXPECT_EQ(memories_of(world).empty(), step < 2) << spec << ", step " << step;
    }
    const auto& method = world.method(0);
    EXPECT_GT(method.cost(layout, 2, 0, 1).total().sent, method.cost(layout, 2, 0, 2).total().sent);
  }
}

// A slice that turned dense sends its whole memory; taken back, the memory is there again.
TEST(Sparse, AMemoryGoesOutWithASliceThatTurnsDense) {
  const layout::Layout compressed = layout_of({{200, 10}, {50, 5}});
  const layout::Layout dense = layout_of({{200, 1}, {50, 5}});
  for (const std::string& spec : plain_specs()) {
    World world(2, spec);
    std::mt19937 random(68);
    Gradients gradients = testing::normal(2, 250, random);
    world.reduce(gradients, compressed);
    const std::vector<float> a = memory_of(world, 0, "a");
    const std::vector<float> b = memory_of(world, 1, "a");
    gradients.assign(2, std::vector<float>(250, 0.0F));
    world.reduce(gradients, dense);
    for (std::size_t i = 0; i < 200; ++i) {
      EXPECT_FLOAT_EQ(gradients[0][i], (a[i] + b[i]) / 2) << spec;
    }
    EXPECT_TRUE(memory_of(world, 0, "a").empty());
    world.run([&](int rank) { world.method(rank).undo(); });
    EXPECT_EQ(memory_of(world, 0, "a"), a);
  }
}

// What an earlier step sent stays sent, and so does what was sent in other units or before a
// restore.
TEST(SparseUndo, BringsBackOnlyWhatTheLastStepSent) {
  const layout::Layout compressed = layout_of({{200, 10}, {50, 5}});
  const layout::Layout dense = layout_of({{200, 1}, {50, 5}});
  const std::vector<std::function<void(World&)>> changes{
      [&](World& world) {
        Gradients gradients(2, std::vector<float>(250, 1.0F));
        world.reduce(gradients, dense);
      },
      [](World& world) { world.run([&](int rank) { world.method(rank).rescale(2); }); },
      [](World& world) { world.run([&](int rank) { world.method(rank).restore(2, {}); }); }};
  for (const std::string& spec : specs()) {
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
TEST(SparseUndo, BringsNothingBackAfterOtherOptions) {
  const layout::Layout compressed = layout_of({{200, 10}, {50, 5}});
  const layout::Layout dense = layout_of({{200, 1}, {50, 5}});
  for (const std::string& spec : specs()) {
    World world(2, spec);
    std::mt19937 random(69);
    Gradients gradients = testing::normal(2, 250, random);
    world.reduce(gradients, compressed);
    gradients = testing::normal(2, 250, random);
    world.reduce(gradients, dense);
    ASSERT_TRUE(memory_of(world, 0, "a").empty()) << spec;
    const auto before = memories_of(world);
    world.run([&](int rank) {
      world.method(rank).configure("nonfinite=nan");
      world.method(rank).undo();
    });
    EXPECT_EQ(memories_of(world), before) << spec;
  }
}

}  // namespace
}  // namespace scalecom::methods
