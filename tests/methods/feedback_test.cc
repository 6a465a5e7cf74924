#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cmath>

#include "scalecom/core/error.h"
#include "scalecom/state/method_state.h"
#include "tests/device.h"
#include "tests/methods/shapes.h"
#include "tests/state/temporary_folder.h"

// What every method with error feedback keeps, whatever it sends: nothing is lost, a step can be
// taken back, what is not finite stays out, and memories survive buckets, files and worlds.
namespace scalecom::methods {
namespace {

using testing::copies_of;
using testing::Gradients;
using testing::layout_for;
using testing::same_bits;
using testing::small_model;
using testing::World;

class Feedback : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    if (::scalecom::testing::device().is_cuda() && !spec().starts_with("powersgd")) {
      GTEST_SKIP() << "it takes gradients in host memory only";
    }
  }
  std::string spec() const { return GetParam(); }
  layout::Layout layout() const { return layout_for(spec(), small_model()); }
};

using Copies = std::map<std::string, std::vector<float>>;

std::vector<Copies> all_copies(World& world) {
  std::vector<Copies> all;
  for (int r = 0; r < world.size(); ++r) all.push_back(copies_of(world.method(r)));
  return all;
}

void expect_nan(const Gradients& gradients) {
  for (const auto& one : gradients) {
    ASSERT_TRUE(std::all_of(one.begin(), one.end(), [](float x) { return std::isnan(x); }));
  }
}

TEST_P(Feedback, EveryRankHasTheSameBits) {
  std::mt19937 random(1);
  for (const int size : {1, 2, 3, 5}) {
    World world(size, spec());
    for (int step = 0; step < 4; ++step) {
      Gradients gradients = testing::normal(size, layout().elements(), random);
      world.reduce(gradients, layout());
      for (const auto& one : gradients) ASSERT_TRUE(same_bits(one, gradients[0]));
    }
  }
}

// The mean of what went in is what came out and the mean of what stayed.
TEST_P(Feedback, NothingIsLost) {
  const layout::Layout layout = this->layout();
  std::mt19937 random(2);
  for (const int size : {1, 3, 4}) {
    World world(size, spec());
    std::vector<Copies> before(static_cast<std::size_t>(size));
    for (int step = 0; step < 6; ++step) {
      const Gradients in = testing::normal(size, layout.elements(), random);
      Gradients out = in;
      world.reduce(out, layout);
      const std::vector<Copies> after = all_copies(world);
      for (const layout::Slice& slice : layout.slices()) {
        for (std::int64_t i = 0; i < slice.length; ++i) {
          const auto at = static_cast<std::size_t>(slice.offset + i);
          double balance = -static_cast<double>(out[0][at]) * size;
          double scale = std::abs(balance);
          for (std::size_t r = 0; r < in.size(); ++r) {
            const auto held = [&](const Copies& memories) {
              const auto found = memories.find(slice.name);
              return found == memories.end()
                         ? 0.0
                         : static_cast<double>(found->second[static_cast<std::size_t>(i)]);
            };
            balance += in[r][at] + held(before[r]) - held(after[r]);
            scale += std::abs(in[r][at]) + std::abs(held(before[r]));
          }
          ASSERT_LE(std::abs(balance), 1e-5 * scale + 1e-9) << slice.name << " " << i;
        }
      }
      before = after;
    }
  }
}

TEST_P(Feedback, UndoLeavesTheMemoriesAsIfNothingHadBeenSent) {
  const auto model = small_model();
  const layout::Layout whole = layout();
  std::mt19937 random(3);
  World world(3, spec());
  for (int step = 0; step < 3; ++step) {
    Gradients gradients = testing::normal(3, whole.elements(), random);
    world.reduce(gradients, whole);
  }
  const std::vector<Copies> before = all_copies(world);
  const Gradients in = testing::normal(3, whole.elements(), random);
  Gradients out = in;
  world.reduce(out, whole);
  world.run([&](int rank) { world.method(rank).undo(); });
  const std::vector<Copies> after = all_copies(world);
  world.run([&](int rank) { world.method(rank).undo(); });
  EXPECT_EQ(all_copies(world), after) << "a second call changes nothing";
  for (const layout::Slice& slice : whole.slices()) {
    for (std::size_t r = 0; r < in.size(); ++r) {
      if (!before[r].contains(slice.name)) continue;
      for (std::int64_t i = 0; i < slice.length; ++i) {
        const auto at = static_cast<std::size_t>(i);
        ASSERT_EQ(after[r].at(slice.name)[at],
                  before[r].at(slice.name)[at] + in[r][static_cast<std::size_t>(slice.offset + i)])
            << slice.name << " " << i;
      }
      for (const auto& [name, values] : before[r]) {
        if (name != slice.name + "/q") continue;
        ASSERT_EQ(after[r].at(name), values);
      }
    }
  }
}

TEST_P(Feedback, OneNanSpoilsTheBucketEverywhereAndNoMemory) {
  const layout::Layout layout = this->layout();
  std::mt19937 random(4);
  for (const layout::Slice& slice : layout.slices()) {
    for (const float bad : {std::nanf(""), -INFINITY}) {
      World world(3, spec());
      Gradients gradients = testing::normal(3, layout.elements(), random);
      world.reduce(gradients, layout);
      const std::vector<Copies> before = all_copies(world);
      const Gradients in = testing::normal(3, layout.elements(), random);
      gradients = in;
      const auto at = static_cast<std::size_t>(slice.offset + slice.length - 1);
      gradients[1][at] = bad;
      world.reduce(gradients, layout);
      expect_nan(gradients);
      // What is finite stays to be sent; the bad entry counts as nothing.
      const std::vector<Copies> after = all_copies(world);
      for (const layout::Slice& one : layout.slices()) {
        if (!before[1].contains(one.name)) continue;
        for (std::int64_t i = 0; i < one.length; ++i) {
          const auto place = static_cast<std::size_t>(one.offset + i);
          const float g = place == at ? 0.0F : in[1][place];
          ASSERT_EQ(after[1].at(one.name)[static_cast<std::size_t>(i)],
                    before[1].at(one.name)[static_cast<std::size_t>(i)] + g);
        }
      }
      Gradients next = testing::normal(3, layout.elements(), random);
      world.reduce(next, layout);
      for (const float x : next[2]) ASSERT_TRUE(std::isfinite(x)) << "and training goes on";
    }
  }
}

TEST_P(Feedback, ANanCanBeAnErrorOnEveryRank) {
  const layout::Layout layout = this->layout();
  World world(3, spec() + ",nonfinite=error");
  Gradients gradients(3, std::vector<float>(static_cast<std::size_t>(layout.elements()), 1.0F));
  gradients[2][5] = std::nanf("");
  std::atomic<int> errors{0};
  world.run([&](int rank) {
    auto& mine = gradients[static_cast<std::size_t>(rank)];
    EXPECT_THROW(world.reduce_at(rank, core::Buffer::of(mine.data(), layout.elements()), layout),
                 core::CheckError);
    ++errors;
  });
  EXPECT_EQ(errors, 3);
}

// The same tensors in other buckets, and in another order, from step to step.
TEST_P(Feedback, MemoriesBelongToTensors) {
  const auto model = small_model();
  const layout::RatePlan plan(model, make(spec())->rate_policy());
  const std::vector<std::vector<layout::Tensor>> cuts[] = {
      {{model[2], model[0], model[1]}, {model[3], model[4]}},
      {{model[0], model[4]}, {model[1], model[2], model[3]}}};
  const layout::Layout whole = plan.bucket(model);
  World world(2, spec());
  std::mt19937 random(5);
  for (int step = 0; step < 6; ++step) {
    const Gradients in = testing::normal(2, whole.elements(), random);
    const std::vector<Copies> before = all_copies(world);
    Copies sent;
    for (const auto& tensors : cuts[step % 2]) {
      const layout::Layout bucket = plan.bucket(tensors);
      Gradients part(2);
      for (std::size_t r = 0; r < 2; ++r) {
        for (const layout::Slice& slice : bucket.slices()) {
          for (const layout::Slice& from : whole.slices()) {
            if (from.name != slice.name) continue;
            part[r].insert(part[r].end(), in[r].begin() + from.offset,
                           in[r].begin() + from.offset + from.length);
          }
        }
      }
      world.reduce(part, bucket);
      ASSERT_TRUE(same_bits(part[0], part[1]));
      for (const layout::Slice& slice : bucket.slices()) {
        sent[slice.name] = {part[0].begin() + slice.offset,
                            part[0].begin() + slice.offset + slice.length};
      }
    }
    ASSERT_EQ(world.method(0).steps(), step + 1);
    const std::vector<Copies> after = all_copies(world);
    for (const layout::Slice& slice : whole.slices()) {
      if (!after[0].contains(slice.name)) continue;
      for (std::size_t i = 0; i < static_cast<std::size_t>(slice.length); ++i) {
        double balance = -2.0 * sent[slice.name][i];
        double scale = std::abs(balance);
        for (std::size_t r = 0; r < 2; ++r) {
          const double g = in[r][static_cast<std::size_t>(slice.offset) + i];
          const auto found = before[r].find(slice.name);
          const double m = found == before[r].end() ? 0.0 : found->second[i];
          balance += g + m - after[r].at(slice.name)[i];
          scale += std::abs(g) + std::abs(m);
        }
        ASSERT_LE(std::abs(balance), 1e-5 * scale + 1e-9) << slice.name;
      }
    }
  }
}

TEST_P(Feedback, TakesGradientsOf16Bits) {
  const layout::Layout layout = this->layout();
  std::mt19937 random(6);
  for (const core::DType dtype : {core::DType::kBFloat16, core::DType::kFloat16}) {
    World world(2, spec());
    World wide(2, spec());
    for (int step = 0; step < 3; ++step) {
      Gradients gradients = testing::normal(2, layout.elements(), random);
      std::vector<std::vector<std::uint16_t>> narrow(2);
      for (std::size_t r = 0; r < 2; ++r) {
        for (float& g : gradients[r]) {
          g = core::round_to(dtype, g);
          narrow[r].push_back(core::to_bits16(dtype, g));
        }
      }
      world.run([&](int rank) {
        auto& mine = narrow[static_cast<std::size_t>(rank)];
        world.reduce_at(rank, {mine.data(), layout.elements(), dtype}, layout);
      });
      wide.reduce(gradients, layout);
      ASSERT_EQ(narrow[0], narrow[1]);
      for (std::size_t i = 0; i < narrow[0].size(); ++i) {
        const auto bits = dtype == core::DType::kFloat16 ? core::to_float16_bits(gradients[0][i])
                                                         : core::to_bfloat16_bits(gradients[0][i]);
        ASSERT_EQ(narrow[0][i], bits) << i;
      }
      EXPECT_EQ(all_copies(world), all_copies(wide)) << "memories are fp32";
    }
  }
}

// As a dense mean of that type would be. They were sent as fp32, and are in no memory any more.
TEST_P(Feedback, MeansTooLargeForFloat16AreInfiniteByThemselves) {
  const layout::Layout layout = this->layout();
  const layout::Slice& fc = layout.slices()[2];
  World world(2, spec());
  World wide(2, spec());
  const std::vector<float> held(static_cast<std::size_t>(fc.length), 60000.0F);
  for (World* one : {&world, &wide}) {
    for (int r = 0; r < 2; ++r) {
      one->method(r).restore(1, testing::to_memories({{fc.name, held}}));
    }
  }
  const auto elements = static_cast<std::size_t>(layout.elements());
  Gradients gradients(2, std::vector<float>(elements, 1.0F));
  for (auto& one : gradients) std::copy(held.begin(), held.end(), one.begin() + fc.offset);
  std::vector<std::vector<std::uint16_t>> narrow(2);
  for (auto& one : narrow) {
    for (const float g : gradients[0]) one.push_back(core::to_float16_bits(g));
  }
  world.run([&](int rank) {
    auto& mine = narrow[static_cast<std::size_t>(rank)];
    world.reduce_at(rank, {mine.data(), layout.elements(), core::DType::kFloat16}, layout);
  });
  wide.reduce(gradients, layout);
  int infinite = 0;
  for (std::size_t i = 0; i < elements; ++i) {
    ASSERT_EQ(narrow[0][i], core::to_float16_bits(gradients[0][i])) << i;
    infinite += std::isinf(core::from_float16_bits(narrow[0][i])) ? 1 : 0;
  }
  EXPECT_GT(infinite, 0);
  EXPECT_LE(infinite, fc.length);
  EXPECT_EQ(all_copies(world), all_copies(wide));
}

TEST_P(Feedback, RescaledMemoriesGoOnInOtherUnits) {
  const layout::Layout layout = this->layout();
  std::mt19937 random(7);
  World world(2, spec());
  World scaled(2, spec());
  for (int step = 0; step < 5; ++step) {
    Gradients gradients = testing::normal(2, layout.elements(), random);
    Gradients larger = gradients;
    if (step == 3) scaled.run([&](int rank) { scaled.method(rank).rescale(4.0F); });
    const float units = step >= 3 ? 4.0F : 1.0F;
    for (auto& one : larger) {
      for (float& g : one) g *= units;
    }
    world.reduce(gradients, layout);
    scaled.reduce(larger, layout);
    for (std::size_t i = 0; i < gradients[0].size(); ++i) {
      ASSERT_NEAR(larger[0][i], units * gradients[0][i], 1e-4 * (std::abs(larger[0][i]) + 0.01));
    }
  }
}

TEST_P(Feedback, ASavedRunGoesOnBitForBit) {
  const layout::Layout layout = this->layout();
  std::mt19937 random(8);
  World world(2, spec());
  World resumed(2, spec());
  for (int step = 0; step < 6; ++step) {
    if (step == 3) {
      for (int r = 0; r < 2; ++r) {
        resumed.method(r).restore(3, testing::to_memories(copies_of(world.method(r))));
      }
    }
    Gradients gradients = testing::normal(2, layout.elements(), random);
    Gradients again = gradients;
    world.reduce(gradients, layout);
    if (step < 3) continue;
    resumed.reduce(again, layout);
    ASSERT_TRUE(same_bits(gradients[0], again[0])) << step;
  }
}

TEST_P(Feedback, AnotherNumberOfRanksKeepsTheMean) {
  const layout::Layout layout = this->layout();
  std::mt19937 random(9);
  for (const auto& [former, now] : {std::pair(4, 2), std::pair(2, 3)}) {
    World world(former, spec());
    for (int step = 0; step < 3; ++step) {
      Gradients gradients = testing::normal(former, layout.elements(), random);
      world.reduce(gradients, layout);
    }
    const state::TemporaryFolder folder;
    world.run(
        [&](int rank) { state::save_method(folder.path(), world.method(rank), world.end(rank)); });
    World other(now, spec());
    other.run(
        [&](int rank) { state::load_method(folder.path(), other.method(rank), other.end(rank)); });
    EXPECT_EQ(other.method(0).steps(), 3);
    const auto before = all_copies(world);
    const auto after = all_copies(other);
    ASSERT_FALSE(before[0].empty());
    for (const auto& [name, values] : before[0]) {
      for (std::size_t i = 0; i < values.size(); ++i) {
        double was = 0;
        double is = 0;
        for (const Copies& one : before) was += one.at(name)[i] / static_cast<double>(former);
        for (const Copies& one : after) is += one.at(name)[i] / static_cast<double>(now);
        ASSERT_NEAR(is, was, 1e-5 * std::abs(was) + 1e-6) << name;
      }
      if (!name.ends_with("/q")) continue;
      EXPECT_EQ(after[0].at(name), values) << "the same everywhere";
    }
    Gradients gradients = testing::normal(now, layout.elements(), random);
    other.reduce(gradients, layout);
    EXPECT_TRUE(same_bits(gradients[0], gradients[1]));
  }
}

TEST_P(Feedback, GradientsOfZerosAreFine) {
  const layout::Layout layout = this->layout();
  World world(2, spec());
  std::mt19937 random(10);
  for (int step = 0; step < 4; ++step) {
    Gradients gradients =
        step % 2 == 0
            ? Gradients(2, std::vector<float>(static_cast<std::size_t>(layout.elements()), 0.0F))
            : testing::normal(2, layout.elements(), random);
    world.reduce(gradients, layout);
    for (const float x : gradients[0]) ASSERT_TRUE(std::isfinite(x));
    if (step == 0) {
      for (const float x : gradients[0]) ASSERT_EQ(x, 0.0F);
    }
  }
}

TEST_P(Feedback, TensorsOfNoElementsAreFine) {
  const layout::Layout layout({{"none", 0, 0, 1, {0, 5}}, {"one", 0, 1, 1, {1}}});
  World world(3, spec());
  Gradients gradients(3, {3.0F});
  world.reduce(gradients, layout);
  EXPECT_NEAR(gradients[0][0], 3.0F, 1e-6);
}

// Who has no side for a GPU says so, before anything is sent.
TEST(OnGpu, AGradientOnAGpuIsRefusedWhereItCannotBe) {
  if (!::scalecom::testing::device().is_cuda()) GTEST_SKIP() << "needs a GPU";
  for (const std::string spec : {"adacomp", "sketched_sgd,rate=20"}) {
    World world(1, spec);
    const layout::Layout layout = layout_for(spec, small_model());
    Gradients gradients(1, std::vector<float>(static_cast<std::size_t>(layout.elements()), 1.0F));
    try {
      world.reduce(gradients, layout);
      ADD_FAILURE() << spec;
    } catch (const core::UsageError& error) {
      EXPECT_NE(std::string(error.what()).find("host memory"), std::string::npos) << error.what();
    }
    EXPECT_EQ(world.method(0).steps(), 0);
  }
}

INSTANTIATE_TEST_SUITE_P(Methods, Feedback,
                         ::testing::Values("powersgd,rank=2", "powersgd,rank=1,warm_start=off",
                                           "adacomp", "sketched_sgd,rate=20,momentum=0"),
                         [](const auto& info) {
                           std::string name = info.param;
                           std::replace_if(
                               name.begin(), name.end(),
                               [](char c) { return !std::isalnum(static_cast<unsigned char>(c)); },
                               '_');
                           return name;
                         });

}  // namespace
}  // namespace scalecom::methods
