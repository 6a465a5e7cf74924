#pragma once

#include <ATen/core/Tensor.h>

#include "train/models/activation.h"

namespace train::models::together {

/// What batch norm saw, of (learners, channels), with the variance of a sample as torch's running
/// figures have it.
struct Seen {
  at::Tensor mean;
  at::Tensor variance;
};

/// Batch norm of each learner's mini-batch on its own, then `added`, of the shape of `x`, where it
/// is defined, then the activation. As convolution.h has it; scale and bias are of (learners,
/// channels).
at::Tensor batch_norm(const at::Tensor& x, const at::Tensor& scale, const at::Tensor& bias,
                      Activation activation, const at::Tensor& added, Seen& seen);

}  // namespace train::models::together
