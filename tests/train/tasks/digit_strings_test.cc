#include "train/tasks/digit_strings.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>

namespace train::tasks {
namespace {

/// Digits of two speakers, of 5 to 14 frames.
std::vector<SpokenDigit> some_digits() {
  std::vector<SpokenDigit> digits;
  std::int32_t first = 1;
  for (int i = 0; i < 20; ++i) {
    digits.push_back({i % 10, i / 10, first, 5 + i % 10});
    first += 5 + i % 10;
  }
  return digits;
}

DigitStrings::Options options() {
  return {60, 3, 2, 4};
}

TEST(DigitStringsTest, AStringIsAFunctionOfItsArguments) {
  const DigitStrings strings(some_digits(), options());
  EXPECT_EQ(strings.compose(3, 5).frames, strings.compose(3, 5).frames);
  std::set<std::vector<int>> different;
  for (std::uint64_t noise = 0; noise < 50; ++noise) {
    different.insert(strings.compose(3, noise).digits);
  }
  EXPECT_GT(different.size(), 25U);
}

TEST(DigitStringsTest, HasWholeDigitsOfOneSpeakerWithPauses) {
  const std::vector<SpokenDigit> digits = some_digits();
  const DigitStrings strings(digits, options());
  for (std::uint64_t noise = 0; noise < 200; ++noise) {
    const auto first = static_cast<std::int64_t>(noise % 20);
    const DigitStrings::String string = strings.compose(first, noise);
    ASSERT_EQ(string.frames.size(), 60U);
    EXPECT_LE(string.digits.size(), 4U);
    EXPECT_GE(string.digits.size(), 2U);
    EXPECT_EQ(string.digits[0], digits[static_cast<std::size_t>(first)].digit);
    std::vector<int> read;
    int pause = 0;
    for (std::size_t i = 0; i < string.frames.size();) {
      if (string.frames[i] == 0) {
        ++i;
        ++pause;
        continue;
      }
      const auto digit = std::find_if(digits.begin(), digits.end(), [&](const SpokenDigit& d) {
        return d.first == string.frames[i];
      });
      ASSERT_NE(digit, digits.end());
      EXPECT_EQ(digit->speaker, first / 10);
      for (std::int32_t f = 0; f < digit->frames; ++f) {
        ASSERT_EQ(string.frames[i++], digit->first + f);
      }
      EXPECT_LE(pause, 3);
      EXPECT_TRUE(!read.empty() || pause == 0);
      pause = 0;
      read.push_back(digit->digit);
    }
    EXPECT_EQ(read, string.digits);
  }
}

TEST(DigitStringsTest, EndsWhereNoMoreFits) {
  DigitStrings::Options narrow = options();
  narrow.window = 14;
  const DigitStrings strings(some_digits(), narrow);
  EXPECT_EQ(strings.compose(9, 1).digits, std::vector<int>{9});
}

TEST(DigitFramesTest, BandsHaveNoMeanAndADeviationOfOne) {
  const data::LogMel features({});
  DigitFrames frames(features);
  std::vector<data::Recording> recordings(2);
  for (int i = 0; i < 900; ++i) {
    recordings[0].samples.push_back(static_cast<std::int16_t>(i * i % 3001 - 1500));
    recordings[1].samples.push_back(static_cast<std::int16_t>(i * 37 % 801));
  }
  const auto digits = frames.add(recordings);
  EXPECT_EQ(digits[0].first, 1);
  EXPECT_EQ(digits[0].frames, features.frames(900));
  EXPECT_EQ(digits[1].first, 1 + digits[0].frames);
  EXPECT_EQ(frames.values()[0], data::LogMel::silence());
  frames.normalise(digits);
  for (std::size_t band = 0; band < 40; ++band) {
    double sum = 0;
    double squares = 0;
    double count = 0;
    for (std::size_t i = 40 + band; i < frames.values().size(); i += 40) {
      sum += frames.values()[i];
      squares += frames.values()[i] * frames.values()[i];
      count += 1;
    }
    EXPECT_NEAR(sum / count, 0, 1e-4);
    EXPECT_NEAR(squares / count, 1, 1e-3);
  }
}

}  // namespace
}  // namespace train::tasks
