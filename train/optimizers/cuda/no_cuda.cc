#include "scalecom/core/cuda/runtime.h"
#include "train/optimizers/cuda/adam.h"
#include "train/optimizers/cuda/sgd.h"

namespace train::optimizers::cuda {

namespace core = scalecom::core;

core::Array<WeightSlice> make_tiles(core::Device device, std::span<const WeightSlice> /*slices*/) {
  core::cuda::require(device);
  return {};
}
void sgd_step(const core::Array<WeightSlice>& /*tiles*/, float* /*weights*/, float* /*momentum*/,
              const float* /*gradient*/, SgdFactors /*factors*/, const core::Stream& stream) {
  core::cuda::require(stream.device());
}
void adam_step(const core::Array<WeightSlice>& /*tiles*/, float* /*weights*/, float* /*mean*/,
               float* /*square*/, const float* /*gradient*/, AdamFactors /*factors*/,
               const core::Stream& stream) {
  core::cuda::require(stream.device());
}

}  // namespace train::optimizers::cuda
