#include "scalecom/core/cuda/check.h"
#include "scalecom/core/cuda/native.h"
#include "scalecom/core/cuda/runtime.h"
#include "train/optimizers/cuda/sgd.h"

namespace train::optimizers::cuda {
namespace {

namespace core = scalecom::core;

__global__ void __launch_bounds__(kTileThreads)
    step_tiles(const WeightSlice* __restrict__ d_tiles, float* __restrict__ d_weights,
               float* __restrict__ d_momentum, const float* __restrict__ d_gradient,
               SgdFactors factors) {
  const WeightSlice tile = d_tiles[blockIdx.x];
  for (std::int64_t i = tile.begin + threadIdx.x; i < tile.end; i += kTileThreads) {
    const float weight = d_weights[i];
    const float gradient = d_gradient[i];
    const float pull = tile.weight_decay * weight;
    const float slope =
        (factors.gradient_has_momentum ? 0 : gradient) + (factors.masked ? 0 : pull);
    const float speed = factors.momentum * d_momentum[i] + slope;
    d_momentum[i] = speed;
    const float step =
        (factors.gradient_has_momentum ? gradient : 0) + (slope + factors.momentum * speed);
    const float moved = factors.masked ? (gradient == 0 ? 0 : step) + pull : step;
    d_weights[i] = weight - factors.rate * moved;
  }
}

}  // namespace

void sgd_step(const core::Array<WeightSlice>& tiles, float* weights, float* momentum,
              const float* gradient, SgdFactors factors, const core::Stream& stream) {
  if (tiles.size() == 0) return;
  const core::cuda::DeviceScope scope(stream.device());
  step_tiles<<<static_cast<unsigned>(tiles.size()), kTileThreads, 0, core::cuda::native(stream)>>>(
      tiles.data(), weights, momentum, gradient, factors);
  core::cuda::check(cudaGetLastError(), "the optimizer's step");
}

}  // namespace train::optimizers::cuda
