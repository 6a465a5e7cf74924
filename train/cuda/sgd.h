#pragma once

#include <cstdint>
#include <span>

#include "scalecom/core/array.h"
#include "scalecom/core/stream.h"

/// The optimizer's arithmetic on a GPU: the same operations as train/optimizer.cc, the same bits.
namespace train::cuda {

/// A piece of the weights, and what decays there a step.
struct SgdSlice {
  std::int64_t begin = 0;
  std::int64_t end = 0;
  float weight_decay = 0;
};

/// The slices cut into what one block of threads does.
scalecom::core::Array<SgdSlice> make_sgd_tiles(scalecom::core::Device device,
                                               std::span<const SgdSlice> slices);

struct SgdFactors {
  float rate = 0;
  float momentum = 0;
  bool gradient_has_momentum = false;
};

/// In order on `stream`; all arrays are on its device.
void sgd_step(const scalecom::core::Array<SgdSlice>& tiles, float* weights, float* momentum,
              const float* gradient, SgdFactors factors, const scalecom::core::Stream& stream);

}  // namespace train::cuda
