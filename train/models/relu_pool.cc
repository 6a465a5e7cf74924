#include "train/models/relu_pool.h"

namespace train::models {
namespace {

constexpr Source kNone = 4;

/// One window: its places are the next two of the upper row, then of the lower.
void pool(const float* __restrict upper, const float* __restrict lower, std::int64_t channels,
          float* __restrict out, Source* __restrict source) {
  for (std::int64_t c = 0; c < channels; ++c) {
    const float in[] = {upper[c], upper[channels + c], lower[c], lower[channels + c]};
    float largest = 0;
    Source from = kNone;
    for (Source i = 0; i < 4; ++i) {
      from = in[i] > largest ? i : from;
      largest = in[i] > largest ? in[i] : largest;
    }
    out[c] = largest;
    source[c] = from;
  }
}

void unpool(const float* __restrict grad, const Source* __restrict source, std::int64_t channels,
            Source place, float* __restrict out) {
  for (std::int64_t c = 0; c < channels; ++c) {
    const float g = grad[c];
    out[c] = source[c] == place ? g : 0;
  }
}

}  // namespace

void relu_pool(const float* in, std::int64_t rows, std::int64_t places, std::int64_t channels,
               float* out, Source* source) {
  const std::int64_t row_size = 2 * places * channels;
  for (std::int64_t row = 0; row < rows; ++row) {
    const float* const upper = in + 2 * row * row_size;
    for (std::int64_t place = 0; place < places; ++place) {
      const std::int64_t at = (row * places + place) * channels;
      const float* const window = upper + 2 * place * channels;
      pool(window, window + row_size, channels, out + at, source + at);
    }
  }
}

void relu_pool_backward(const float* grad, const Source* source, std::int64_t rows,
                        std::int64_t places, std::int64_t channels, float* grad_in) {
  const std::int64_t row_size = 2 * places * channels;
  for (std::int64_t row = 0; row < rows; ++row) {
    float* const upper = grad_in + 2 * row * row_size;
    for (std::int64_t place = 0; place < places; ++place) {
      const std::int64_t at = (row * places + place) * channels;
      float* const window = upper + 2 * place * channels;
      unpool(grad + at, source + at, channels, 0, window);
      unpool(grad + at, source + at, channels, 1, window + channels);
      unpool(grad + at, source + at, channels, 2, window + row_size);
      unpool(grad + at, source + at, channels, 3, window + row_size + channels);
    }
  }
}

}  // namespace train::models
