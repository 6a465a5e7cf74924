#pragma once

#include <span>
#include <vector>

#include "scalecom/layout/layout.h"
#include "train/optimizers/cuda/tiles.h"

namespace train::optimizers {

/// The tensors in one flat array; matrices decay.
inline std::vector<cuda::WeightSlice> weight_slices(
    std::span<const scalecom::layout::Tensor> tensors, double weight_decay) {
  std::vector<cuda::WeightSlice> slices;
  std::int64_t at = 0;
  for (const auto& tensor : tensors) {
    const std::int64_t end = at + tensor.elements();
    const double decay = tensor.shape.size() > 1 ? weight_decay : 0;
    slices.push_back({at, end, static_cast<float>(decay)});
    at = end;
  }
  return slices;
}

/// Their elements.
inline std::int64_t elements(std::span<const cuda::WeightSlice> slices) {
  return slices.empty() ? 0 : slices.back().end;
}

}  // namespace train::optimizers
