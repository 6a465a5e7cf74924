#include <algorithm>
#include <vector>

#include "scalecom/core/cuda/check.h"
#include "scalecom/core/cuda/runtime.h"
#include "train/cuda/sgd.h"

namespace train::cuda {
namespace {

namespace core = scalecom::core;

constexpr int kThreads = 256;
constexpr std::int64_t kTile = 4 * kThreads;

__global__ void __launch_bounds__(kThreads)
    step_tiles(const SgdSlice* __restrict__ d_tiles, float* __restrict__ d_weights,
               float* __restrict__ d_momentum, const float* __restrict__ d_gradient,
               SgdFactors factors) {
  const SgdSlice tile = d_tiles[blockIdx.x];
  for (std::int64_t i = tile.begin + threadIdx.x; i < tile.end; i += kThreads) {
    const float weight = d_weights[i];
    const float gradient = d_gradient[i];
    const float pull = tile.weight_decay * weight;
    const float slope = factors.gradient_has_momentum ? pull : gradient + pull;
    const float speed = factors.momentum * d_momentum[i] + slope;
    d_momentum[i] = speed;
    const float step = slope + factors.momentum * speed;
    d_weights[i] = weight - factors.rate * (factors.gradient_has_momentum ? gradient + step : step);
  }
}

}  // namespace

core::Array<SgdSlice> make_sgd_tiles(core::Device device, std::span<const SgdSlice> slices) {
  std::vector<SgdSlice> tiles;
  for (const SgdSlice& slice : slices) {
    for (std::int64_t at = slice.begin; at < slice.end; at += kTile) {
      tiles.push_back({at, std::min(at + kTile, slice.end), slice.weight_decay});
    }
  }
  core::Array<SgdSlice> d_tiles(device, static_cast<std::int64_t>(tiles.size()));
  const core::Stream stream = core::Stream::cuda(device);
  core::cuda::copy(d_tiles.data(), tiles.data(),
                   d_tiles.size() * static_cast<std::int64_t>(sizeof(SgdSlice)), stream);
  core::cuda::synchronize(stream);
  return d_tiles;
}

void sgd_step(const core::Array<SgdSlice>& tiles, float* weights, float* momentum,
              const float* gradient, SgdFactors factors, const core::Stream& stream) {
  if (tiles.size() == 0) return;
  const core::cuda::DeviceScope scope(stream.device());
  step_tiles<<<static_cast<unsigned>(tiles.size()), kThreads, 0,
               static_cast<cudaStream_t>(stream.native())>>>(tiles.data(), weights, momentum,
                                                             gradient, factors);
  core::cuda::check(cudaGetLastError(), "the optimizer's step");
}

}  // namespace train::cuda
