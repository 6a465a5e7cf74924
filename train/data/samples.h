#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace train::data {

struct Shape {
  std::int64_t channels = 1;
  std::int64_t height = 1;
  std::int64_t width = 1;
  std::int64_t elements() const { return channels * height * width; }
};

/// How training changes its samples at random.
struct Variation {
  int shift = 0;          ///< places that a sample is moved by at most, to every side
  bool mirrored = false;  ///< half of the time
};

/// Labelled samples of one shape. They lie one after the other, a
/// channel after the other within, as bytes or as floats.
struct Samples {
  Shape shape;
  std::vector<std::uint8_t> bytes;
  std::vector<float> scale;   ///< what each byte stands for: 256 values a channel
  std::vector<float> floats;  ///< instead of bytes, taken as they are
  std::vector<std::uint8_t> labels;

  Variation variation;

  std::int64_t size() const { return static_cast<std::int64_t>(labels.size()); }
};

/// A channel's part of Samples::scale for bytes of which 255 is 1, less `mean`, over `deviation`.
void append_scale(float mean, float deviation, std::vector<float>& scale);

/// A sample as it is taken. The place (y, x) shows what is at (y + down, x + right) of the sample,
/// which goes on beyond its edges as seen in a mirror that stands on its last place, and then left
/// and right are exchanged in a mirrored one. It is moved by less than its own size.
struct Pick {
  std::int32_t sample = 0;
  std::int8_t down = 0;
  std::int8_t right = 0;
  std::uint8_t mirrored = 0;
  std::uint8_t unused = 0;

  bool operator==(const Pick&) const = default;
};

/// The sample with such changes, all of them drawn from `noise`.
Pick vary(const Variation& variation, std::int64_t sample, std::uint64_t noise);

/// Takes the last `count` of the samples away and returns them, as a test set of their own. There
/// are more of them.
Samples hold_out(Samples& samples, std::int64_t count);

/// What a network takes for a pick, a channel after the other.
void copy(const Samples& samples, const Pick& pick, std::span<float> out);

}  // namespace train::data
