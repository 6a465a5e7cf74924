#include "train/data/log_mel.h"

#include <gtest/gtest.h>

#include <cmath>
#include <complex>
#include <numbers>

namespace train::data {
namespace {

std::vector<std::int16_t> tone(double frequency, std::size_t samples, double loudness = 8000) {
  std::vector<std::int16_t> out(samples);
  for (std::size_t i = 0; i < samples; ++i) {
    const double angle = 2 * std::numbers::pi * frequency * static_cast<double>(i) / 8000;
    out[i] = static_cast<std::int16_t>(loudness * std::sin(angle));
  }
  return out;
}

/// The features' definition, a sum for each frequency.
double plain_band(std::span<const std::int16_t> samples, std::int64_t frame, int band) {
  const LogMel::Options o;
  const auto mel = [](double f) { return 2595 * std::log10(1 + f / 700); };
  const double width = mel(o.rate / 2.0) / (o.bands + 1);
  double energy = 0;
  for (int f = 0; f <= o.transform / 2; ++f) {
    const double frequency = static_cast<double>(f) * o.rate / o.transform;
    // Triangles are straight over frequencies, not over mels.
    const auto peak = [&](int b) { return 700 * (std::pow(10, (b + 1) * width / 2595) - 1); };
    const double weight = std::min((frequency - peak(band - 1)) / (peak(band) - peak(band - 1)),
                                   (peak(band + 1) - frequency) / (peak(band + 1) - peak(band)));
    if (weight <= 0) continue;
    std::complex<double> sum = 0;
    for (int i = 0; i < o.window; ++i) {
      const auto at = static_cast<std::size_t>(frame * o.hop + i);
      if (at >= samples.size()) break;
      const double hann = 0.5 - 0.5 * std::cos(2 * std::numbers::pi * (i + 0.5) / o.window);
      const double angle = -2 * std::numbers::pi * f * i / o.transform;
      sum += hann * samples[at] / 32768.0 * std::polar(1.0, angle);
    }
    energy += weight * std::norm(sum);
  }
  return std::log(energy + 1e-6);
}

TEST(LogMelTest, IsItsDefinition) {
  const LogMel features({});
  // The second is shorter than a frame.
  for (const std::int64_t samples : {700, 150}) {
    std::vector<std::int16_t> sound = tone(310, static_cast<std::size_t>(samples));
    for (std::size_t i = 0; i < sound.size(); ++i) {
      sound[i] = static_cast<std::int16_t>(sound[i] + static_cast<int>(i * i * 37 % 4001) - 2000);
    }
    const std::vector<float> out = features(sound);
    ASSERT_EQ(out.size(), static_cast<std::size_t>(features.frames(samples) * 40));
    for (std::int64_t frame = 0; frame < features.frames(samples); ++frame) {
      for (int band = 0; band < 40; ++band) {
        EXPECT_NEAR(out[static_cast<std::size_t>(frame * 40 + band)],
                    plain_band(sound, frame, band), 1e-4);
      }
    }
  }
}

TEST(LogMelTest, CountsFramesThatLieWithin) {
  const LogMel features({});
  EXPECT_EQ(features.frames(1), 1);
  EXPECT_EQ(features.frames(200), 1);
  EXPECT_EQ(features.frames(279), 1);
  EXPECT_EQ(features.frames(280), 2);
}

TEST(LogMelTest, SilenceIsTheFloor) {
  const LogMel features({});
  for (const float value : features(std::vector<std::int16_t>(500))) {
    EXPECT_EQ(value, LogMel::silence());
  }
}

TEST(LogMelTest, AHigherToneIsInAHigherBand) {
  const LogMel features({});
  const auto loudest = [&](double frequency) {
    const std::vector<float> out = features(tone(frequency, 200));
    return std::max_element(out.begin(), out.end()) - out.begin();
  };
  EXPECT_LT(loudest(200), loudest(500));
  EXPECT_LT(loudest(500), loudest(2000));
  EXPECT_LT(loudest(2000), loudest(3500));
}

}  // namespace
}  // namespace train::data
