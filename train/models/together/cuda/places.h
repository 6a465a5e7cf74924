#pragma once

#include <cstdint>

namespace train::models::together::cuda {

/// Samples with their places, channels last, in bf16.
struct Places {
  std::int64_t samples = 0;
  std::int64_t height = 0;
  std::int64_t width = 0;
  std::int64_t channels = 0;

  std::int64_t count() const { return samples * height * width; }
  /// What a convolution that keeps height and width gives, but for its stride.
  Places after(std::int64_t stride) const {
    return {samples, (height + stride - 1) / stride, (width + stride - 1) / stride, channels};
  }
};

/// Whether the kernels here can compute with so many channels.
constexpr bool takes_channels(std::int64_t channels) {
  return channels % 8 == 0 && channels <= 2048;
}

}  // namespace train::models::together::cuda
