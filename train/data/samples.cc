#include "train/data/samples.h"

#include <algorithm>

namespace train::data {
namespace {

/// The place inside of `size` that is seen at `place`.
std::int64_t reflected(std::int64_t place, std::int64_t size) {
  if (place < 0) return -place;
  return place < size ? place : 2 * size - 2 - place;
}

/// One row of a picture; `value` says what its places hold.
template <typename Value>
void copy_row(const Pick& pick, std::int64_t width, const Value& value, float* out) {
  for (std::int64_t x = 0; x < width; ++x) out[x] = value(reflected(x + pick.right, width));
  if (pick.mirrored != 0) std::reverse(out, out + width);
}

}  // namespace

void append_scale(float mean, float deviation, std::vector<float>& scale) {
  for (int byte = 0; byte < 256; ++byte) {
    scale.push_back((static_cast<float>(byte) / 255 - mean) / deviation);
  }
}

Pick vary(const Variation& variation, std::int64_t sample, std::uint64_t noise) {
  Pick pick{static_cast<std::int32_t>(sample)};
  if (variation.mirrored) pick.mirrored = noise & 1;
  const auto places = 2 * static_cast<std::uint64_t>(variation.shift) + 1;
  pick.down = static_cast<std::int8_t>(static_cast<int>((noise >> 8) % places) - variation.shift);
  pick.right = static_cast<std::int8_t>(static_cast<int>((noise >> 36) % places) - variation.shift);
  return pick;
}

void copy(const Samples& samples, const Pick& pick, std::span<float> out) {
  const auto [channels, height, width] = samples.shape;
  const std::int64_t begin = pick.sample * samples.shape.elements();
  float* to = out.data();
  for (std::int64_t c = 0; c < channels; ++c) {
    for (std::int64_t y = 0; y < height; ++y, to += width) {
      const std::int64_t row = begin + (c * height + reflected(y + pick.down, height)) * width;
      if (samples.floats.empty()) {
        const std::uint8_t* const bytes = samples.bytes.data() + row;
        const float* const scale = samples.scale.data() + c * 256;
        copy_row(
            pick, width, [&](std::int64_t x) { return scale[bytes[x]]; }, to);
      } else {
        const float* const floats = samples.floats.data() + row;
        copy_row(
            pick, width, [&](std::int64_t x) { return floats[x]; }, to);
      }
    }
  }
}

Samples hold_out(Samples& samples, std::int64_t count) {
  const auto take = [&](auto& all, std::int64_t each) {
    const auto rest = all.end() - std::min<std::ptrdiff_t>(count * each, std::ssize(all));
    std::remove_reference_t<decltype(all)> part(rest, all.end());
    all.erase(rest, all.end());
    return part;
  };
  Samples held;
  held.shape = samples.shape;
  held.scale = samples.scale;
  held.bytes = take(samples.bytes, samples.shape.elements());
  held.floats = take(samples.floats, samples.shape.elements());
  held.labels = take(samples.labels, 1);
  return held;
}

}  // namespace train::data
