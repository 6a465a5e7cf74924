#include "train/data/samples.h"

#include <gtest/gtest.h>

#include <map>

#include "scalecom/core/hash.h"

namespace train::data {
namespace {

/// Two samples of two channels, 2 x 3; every byte stands for itself.
Samples numbers() {
  Samples samples;
  samples.shape = {2, 2, 3};
  for (int i = 0; i < 24; ++i) samples.bytes.push_back(static_cast<std::uint8_t>(i + 1));
  for (int i = 0; i < 512; ++i) samples.scale.push_back(static_cast<float>(i % 256));
  samples.labels = {7, 8};
  return samples;
}

std::vector<float> taken(const Samples& samples, const Pick& pick) {
  std::vector<float> out(12, -1);
  copy(samples, pick, out);
  return out;
}

TEST(SamplesTest, AreTakenAsTheyAre) {
  EXPECT_EQ(taken(numbers(), {1}),
            (std::vector<float>{13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24}));
}

TEST(SamplesTest, AreMovedAndThenMirrored) {
  EXPECT_EQ(taken(numbers(), {0, 1, -1, 0}),
            (std::vector<float>{5, 4, 5, 2, 1, 2, 11, 10, 11, 8, 7, 8}));
  EXPECT_EQ(taken(numbers(), {0, -1, 2, 0}),
            (std::vector<float>{6, 5, 4, 3, 2, 1, 12, 11, 10, 9, 8, 7}));
  EXPECT_EQ(taken(numbers(), {0, -1, 2, 1}),
            (std::vector<float>{4, 5, 6, 1, 2, 3, 10, 11, 12, 7, 8, 9}));
}

TEST(SamplesTest, EveryChannelHasItsOwnScale) {
  Samples samples = numbers();
  for (std::size_t byte = 256; byte < 512; ++byte) samples.scale[byte] *= -1;
  EXPECT_EQ(taken(samples, {0}), (std::vector<float>{1, 2, 3, 4, 5, 6, -7, -8, -9, -10, -11, -12}));
}

TEST(SamplesTest, FloatsAreTakenToo) {
  Samples samples = numbers();
  samples.floats.assign(samples.bytes.begin(), samples.bytes.end());
  samples.bytes.clear();
  samples.scale.clear();
  EXPECT_EQ(taken(samples, {1, 0, 1, 1}), taken(numbers(), {1, 0, 1, 1}));
}

TEST(SamplesTest, EveryVariationComesAboutAsOften) {
  std::map<std::pair<int, int>, int> places;
  int mirrored = 0;
  constexpr int kDraws = 81 * 200;
  for (std::uint64_t i = 0; i < kDraws; ++i) {
    const Pick pick = vary({4, true}, 3, scalecom::core::combine(1, i));
    EXPECT_EQ(pick, vary({4, true}, 3, scalecom::core::combine(1, i)));
    EXPECT_EQ(pick.sample, 3);
    ++places[{pick.down, pick.right}];
    mirrored += pick.mirrored;
  }
  EXPECT_EQ(places.size(), 81U);
  for (const auto& [place, count] : places) {
    EXPECT_LE(std::abs(place.first), 4);
    EXPECT_LE(std::abs(place.second), 4);
    EXPECT_NEAR(count, 200, 75);
  }
  EXPECT_NEAR(mirrored, kDraws / 2, 400);
  EXPECT_EQ(vary({}, 5, 0xffffffffffffffff), (Pick{5}));
}

TEST(SamplesTest, TheLastCanBeHeldOut) {
  Samples samples = numbers();
  samples.variation = {2, true};
  const Samples held = hold_out(samples, 1);
  EXPECT_EQ(samples.labels, (std::vector<std::uint8_t>{7}));
  EXPECT_EQ(samples.bytes.size(), 12);
  EXPECT_EQ(held.labels, (std::vector<std::uint8_t>{8}));
  EXPECT_EQ(held.variation.shift, 0);
  EXPECT_EQ(taken(held, {0}), taken(numbers(), {1}));
  EXPECT_EQ(taken(samples, {0}), taken(numbers(), {0}));
}

}  // namespace
}  // namespace train::data
