#pragma once

#include "scalecom/core/array.h"
#include "scalecom/core/stream.h"
#include "train/optimizers/cuda/tiles.h"

/// The optimizers' arithmetic on a GPU: the same operations as train/sgd.cc and train/adam.cc, the
/// same bits.
namespace train::optimizers::cuda {

struct SgdFactors {
  float rate = 0;
  float momentum = 0;
  bool gradient_has_momentum = false;
  bool masked = false;
};

/// In order on `stream`; all arrays are on its device.
void sgd_step(const scalecom::core::Array<WeightSlice>& tiles, float* weights, float* momentum,
              const float* gradient, SgdFactors factors, const scalecom::core::Stream& stream);

}  // namespace train::optimizers::cuda
