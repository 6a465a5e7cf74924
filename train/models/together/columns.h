#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace train::models::together {

/// What each output of a convolution sees, with zeros outside: (samples * places of the outputs,
/// kernel * kernel * channels), for x of (samples, channels, height, width), channels last.
at::Tensor columns_of(const at::Tensor& x, std::int64_t kernel, std::int64_t stride);

}  // namespace train::models::together
