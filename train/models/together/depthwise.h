#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace train::models::together {

/// As convolution.h has it, but each channel has weights of its own: (learners, 3, 3, 1, channels).
at::Tensor depthwise(const at::Tensor& x, const at::Tensor& weights, std::int64_t stride);

}  // namespace train::models::together
