#include "train/optimizers/cuda/tiles.h"

#include <algorithm>
#include <vector>

#include "scalecom/core/cuda/runtime.h"

namespace train::optimizers::cuda {

namespace core = scalecom::core;

core::Array<WeightSlice> make_tiles(core::Device device, std::span<const WeightSlice> slices) {
  std::vector<WeightSlice> tiles;
  for (const WeightSlice& slice : slices) {
    for (std::int64_t at = slice.begin; at < slice.end; at += kTile) {
      tiles.push_back({at, std::min(at + kTile, slice.end), slice.weight_decay});
    }
  }
  core::Array<WeightSlice> d_tiles(device, static_cast<std::int64_t>(tiles.size()));
  const core::Stream stream = core::Stream::cuda(device);
  core::cuda::copy(d_tiles.data(), tiles.data(),
                   d_tiles.size() * static_cast<std::int64_t>(sizeof(WeightSlice)), stream);
  core::cuda::synchronize(stream);
  return d_tiles;
}

}  // namespace train::optimizers::cuda
