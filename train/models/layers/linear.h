#pragma once

#include <ATen/core/Tensor.h>

namespace train::models::layers {

/// x of (samples, places, inputs) by a weight of (inputs, outputs) and a bias: (samples, places,
/// outputs). With (learners, inputs, outputs), which is the same numbers for each, samples are
/// those of all learners, one after the other, and each learner's gradient is apart.
at::Tensor linear(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias);

}  // namespace train::models::layers
