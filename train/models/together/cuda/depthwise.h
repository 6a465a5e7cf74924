#pragma once

#include <cstdint>

#include "scalecom/core/stream.h"
#include "train/models/together/cuda/places.h"

/// A 3 x 3 convolution of each channel on its own. `in` is the shape of x; weights are (9,
/// channels), in fp32.
namespace train::models::together::cuda {

void depthwise_forward(const void* x, const float* weights, const Places& in, std::int64_t stride,
                       void* y, const scalecom::core::Stream& stream);

void depthwise_input(const void* grad, const float* weights, const Places& in, std::int64_t stride,
                     void* grad_x, const scalecom::core::Stream& stream);

/// Each learner's own, (learners, 9, channels), by way of depthwise_parts() times as many in
/// `scratch`.
std::int64_t depthwise_parts(const Places& in, std::int64_t learners, std::int64_t stride);
void depthwise_weights(const void* grad, const void* x, const Places& in, std::int64_t learners,
                       std::int64_t stride, float* scratch, float* grad_weights,
                       const scalecom::core::Stream& stream);

}  // namespace train::models::together::cuda
