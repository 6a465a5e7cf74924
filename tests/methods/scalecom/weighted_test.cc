#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "scalecom/core/error.h"
#include "scalecom/core/text.h"
#include "scalecom/methods/scalecom/scalecom.h"
#include "tests/methods/plain_sparse.h"
#include "tests/methods/sparse/worlds.h"

// Weighted error feedback, u = a*grad + b*m, and how it differs from the low-pass filter.
namespace scalecom::methods {
namespace {

using testing::Gradients;
using testing::layout_of;
using testing::memory_of;
using testing::World;

// The memory that is kept is m / a. Powers of two, so that this changes no digit.
TEST(Weighted, EqualsItsPlainStatement) {
  const layout::Layout layout = layout_of({{13, 1}, {1000, 10}, {1, 1}, {777, 25}, {99, 100}});
  std::mt19937 random(81);
  for (const auto& [a, b] : {std::pair(1.0F, 1.0F), std::pair(0.5F, 1.0F), std::pair(4.0F, 0.5F)}) {
    for (const int size : {1, 2, 4, 8}) {
      World world(size, core::concat("weighted,a=", a, ",b=", b));
      testing::PlainWeighted plain(size, a, b, layout);
      for (int step = 0; step < 2 * size + 3; ++step) {
        Gradients gradients = testing::normal(size, layout.elements(), random);
        const std::vector<float> expected = plain.step(gradients);
        world.reduce(gradients, layout);
        for (int rank = 0; rank < size; ++rank) {
          const auto at = static_cast<std::size_t>(rank);
          ASSERT_EQ(gradients[at], expected) << "a " << a << " b " << b << " step " << step;
          std::vector<float> kept = plain.memories()[at];
          for (float& m : kept) m /= a;
          testing::expect_memories(world, rank, layout, kept);
        }
      }
    }
  }
}

TEST(Weighted, WithWeightsOfOneIsScaleComWithoutItsFilter) {
  const layout::Layout layout = layout_of({{1000, 10}, {30, 1}});
  std::mt19937 random(82);
  World weighted(3, "weighted,check=conserve");
  World scalecom(3, "scalecom,beta=1,check=conserve");
  for (int step = 0; step < 7; ++step) {
    Gradients a = testing::normal(3, layout.elements(), random);
    Gradients b = a;
    weighted.reduce(a, layout);
    scalecom.reduce(b, layout);
    ASSERT_TRUE(testing::same_bits(a[2], b[2]));
  }
}

TEST(Weighted, OptionsAreItsOwn) {
  const std::string full = make("weighted,a=0.5,b=0.9,select=exact,values=bf16")->spec();
  EXPECT_EQ(full.rfind("weighted,rate=100,a=0.5,select=exact,b=0.9", 0), 0U) << full;
  EXPECT_EQ(make(full)->spec(), full);
  for (const std::string bad : {"weighted,beta=0.1", "weighted,decay=0.9", "weighted,a=0",
                                "weighted,b=0", "weighted,b=1.1", "weighted,a=1001", "scalecom,a=1",
                                "weighted,leaders=sharded,select=exact", "weighted,a=1e-40"}) {
    EXPECT_THROW(make(bad), core::UsageError) << bad;
  }
}

TEST(Weighted, ChangingAKeepsWhatIsStillToBeSent) {
  const layout::Layout layout = layout_of({{100, 100}});
  World world(1, "weighted,a=2");
  Gradients gradients(1, std::vector<float>(100, 3.0F));
  world.reduce(gradients, layout);
  world.method(0).configure("a=8");
  EXPECT_EQ(memory_of(world, 0, "a")[50], 2 * 3.0F / 8);
}

// Books balance at every weight: what b took away is in them as decayed.
TEST(Weighted, BooksBalance) {
  const layout::Layout layout = layout_of({{3000, 30}, {50, 100}});
  std::mt19937 random(83);
  for (const std::string spec :
       {"weighted,check=conserve", "weighted,a=0.3,b=0.9,check=conserve",
        "weighted,a=3,values=bf16,check=conserve", "weighted,b=0.5,values=fp16,check=conserve"}) {
    World world(3, spec);
    for (int step = 0; step < 20; ++step) {
      Gradients gradients = testing::normal(3, layout.elements(), random);
      EXPECT_NO_THROW(world.reduce(gradients, layout)) << spec;
    }
  }
}

struct Sent {
  double share = 0;      // of a steady gradient, how much is sent in the long run
  double roughness = 0;  // the mean square of what is sent of pure noise, over that of the noise
};

// What a method makes of a gradient that stays the same, and of one that is noise alone.
Sent what_is_sent(const std::string& spec) {
  // The filter's memory needs some hundred steps to fill.
  constexpr int kUntilSteady = 1600;
  constexpr int kSteps = 400;
  const layout::Layout layout = layout_of({{1000, 20}});
  Sent sent;
  World steady(2, spec);
  std::mt19937 random(84);
  std::normal_distribution<float> draw;
  std::vector<float> slope(1000);
  for (float& value : slope) value = 1.0F + 0.1F * draw(random);
  for (int step = 0; step < kUntilSteady + kSteps; ++step) {
    Gradients gradients(2, slope);
    steady.reduce(gradients, layout);
    if (step < kUntilSteady) continue;
    sent.share += std::accumulate(gradients[0].begin(), gradients[0].end(), 0.0);
  }
  sent.share /= kSteps * std::accumulate(slope.begin(), slope.end(), 0.0);
  World noise(1, spec);
  double squares = 0;
  double entries = 0;
  for (int step = 0; step < kSteps; ++step) {
    Gradients gradients(1, std::vector<float>(1000));
    for (float& value : gradients[0]) value = draw(random);
    noise.reduce(gradients, layout);
    for (const float value : gradients[0]) {
      squares += static_cast<double>(value) * value;
      entries += value != 0 ? 1 : 0;
    }
  }
  sent.roughness = squares / entries;
  return sent;
}

// The filter sends all of a steady gradient and little of the noise. Weights must choose: with b of
// 1 all the noise that has gathered goes out at once, with less of it most of the gradient is lost;
// and a scales both alike.
TEST(Weighted, DiffersFromTheFilterInWhatIsLostAndInItsNoise) {
  const Sent filter = what_is_sent("scalecom,beta=0.1");
  const Sent feedback = what_is_sent("weighted,a=1,b=1");
  const Sent forgetful = what_is_sent("weighted,a=1,b=0.5");
  const Sent halved = what_is_sent("weighted,a=0.5,b=1");
  EXPECT_NEAR(filter.share, 1, 0.1);
  EXPECT_NEAR(feedback.share, 1, 0.1);
  EXPECT_LT(forgetful.share, 0.2);
  EXPECT_NEAR(halved.share, 0.5 * feedback.share, 1e-3);
  EXPECT_LT(filter.roughness, 0.4 * feedback.roughness);
  EXPECT_NEAR(halved.roughness, 0.25 * feedback.roughness, 1e-3 * feedback.roughness);
}

}  // namespace
}  // namespace scalecom::methods
