#include "scalecom/core/cuda/runtime.h"
#include "train/cuda/sgd.h"

namespace train::cuda {

namespace core = scalecom::core;

core::Array<SgdSlice> make_sgd_tiles(core::Device device, std::span<const SgdSlice> /*slices*/) {
  core::cuda::require(device);
  return {};
}
void sgd_step(const core::Array<SgdSlice>& /*tiles*/, float* /*weights*/, float* /*momentum*/,
              const float* /*gradient*/, SgdFactors /*factors*/, const core::Stream& stream) {
  core::cuda::require(stream.device());
}

}  // namespace train::cuda
