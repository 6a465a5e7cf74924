#pragma once

#include "scalecom/core/array.h"
#include "scalecom/core/stream.h"
#include "train/optimizers/cuda/tiles.h"

namespace train::optimizers::cuda {

struct AdamFactors {
  float rate = 0;
  float mean = 0;    ///< what is kept of the mean a step
  float square = 0;  ///< and of the mean of squares
  float mean_scale = 1;
  float root_scale = 1;
  float epsilon = 0;
};

/// In order on `stream`; all arrays are on its device.
void adam_step(const scalecom::core::Array<WeightSlice>& tiles, float* weights, float* mean,
               float* square, const float* gradient, AdamFactors factors,
               const scalecom::core::Stream& stream);

}  // namespace train::optimizers::cuda
