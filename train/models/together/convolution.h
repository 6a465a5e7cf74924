#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

/// Layers through which the mini-batches of several learners go at once. All learners have the same
/// weights, so the passes are those of one large batch; the gradient of the weights, and what batch
/// norm sees, are each learner's own.
///
/// What a layer takes is (learners * samples, channels, height, width), channels last, a learner
/// after the other, in fp32 or, on a GPU, in bf16. Its weights are in fp32, with the learners as
/// their first dimension, along which they are the same numbers (an expanded view); so is their
/// gradient, with different ones.
namespace train::models::together {

/// Without a bias, by weights of (learners, height, width, inputs, outputs); height and width are
/// kept, but for the stride.
at::Tensor convolution(const at::Tensor& x, const at::Tensor& weights, std::int64_t stride);

}  // namespace train::models::together
