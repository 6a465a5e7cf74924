#pragma once

#include <ATen/core/Tensor.h>

#include "train/models/current_stream.h"
#include "train/models/together/cuda/batch_norm.h"
#include "train/models/together/cuda/columns.h"
#include "train/models/together/cuda/depthwise.h"

/// How the layers come to their kernels, which know nothing of torch. All that has none is computed
/// by torch's own operations.
namespace train::models::together {

using cuda::Places;

inline bool has_kernels(const at::Tensor& x) {
  return x.is_cuda() && x.scalar_type() == at::kBFloat16 && cuda::takes_channels(x.size(1));
}

inline Places places_of(const at::Tensor& x) {
  return {x.size(0), x.size(2), x.size(3), x.size(1)};
}

}  // namespace train::models::together
