#include "scalecom/core/cuda/check.h"
#include "scalecom/core/cuda/native.h"
#include "scalecom/core/cuda/runtime.h"
#include "train/optimizers/cuda/adam.h"

namespace train::optimizers::cuda {
namespace {

namespace core = scalecom::core;

__global__ void __launch_bounds__(kTileThreads)
    step_tiles(const WeightSlice* __restrict__ d_tiles, float* __restrict__ d_weights,
               float* __restrict__ d_mean, float* __restrict__ d_square,
               const float* __restrict__ d_gradient, AdamFactors factors) {
  const WeightSlice tile = d_tiles[blockIdx.x];
  for (std::int64_t i = tile.begin + threadIdx.x; i < tile.end; i += kTileThreads) {
    const float weight = d_weights[i];
    const float gradient = d_gradient[i];
    const float mean = factors.mean * d_mean[i] + (1 - factors.mean) * gradient;
    const float square =
        factors.square * d_square[i] + (1 - factors.square) * (gradient * gradient);
    d_mean[i] = mean;
    d_square[i] = square;
    const float root = factors.root_scale * sqrtf(square) + factors.epsilon;
    const float direction = factors.mean_scale * mean / root;
    d_weights[i] = weight - factors.rate * (direction + tile.weight_decay * weight);
  }
}

}  // namespace

void adam_step(const core::Array<WeightSlice>& tiles, float* weights, float* mean, float* square,
               const float* gradient, AdamFactors factors, const core::Stream& stream) {
  if (tiles.size() == 0) return;
  const core::cuda::DeviceScope scope(stream.device());
  step_tiles<<<static_cast<unsigned>(tiles.size()), kTileThreads, 0, core::cuda::native(stream)>>>(
      tiles.data(), weights, mean, square, gradient, factors);
  core::cuda::check(cudaGetLastError(), "the optimizer's step");
}

}  // namespace train::optimizers::cuda
