#pragma once

#include <cstdint>

namespace train::models {

/// Which of the four places of a window; as wide as a float, so that the loops over channels become
/// vector instructions.
using Source = std::int32_t;

/// Max pooling over windows of 2 x 2 and a ReLU, for `rows` rows of `places` windows; arrays hold
/// one place's channels after the other's. `source` says which place was the largest, the first of
/// equals, or that none is over 0.
void relu_pool(const float* in, std::int64_t rows, std::int64_t places, std::int64_t channels,
               float* out, Source* source);

/// The gradient of what went in, from that of what came out.
void relu_pool_backward(const float* grad, const Source* source, std::int64_t rows,
                        std::int64_t places, std::int64_t channels, float* grad_in);

}  // namespace train::models
