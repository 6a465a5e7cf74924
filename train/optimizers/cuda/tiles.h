#pragma once

#include <cstdint>
#include <span>

#include "scalecom/core/array.h"

namespace train::optimizers::cuda {

/// A piece of the weights, and what decays there a step.
struct WeightSlice {
  std::int64_t begin = 0;
  std::int64_t end = 0;
  float weight_decay = 0;
};

/// Elements of the pieces that one block of threads does.
constexpr int kTileThreads = 256;
constexpr std::int64_t kTile = 4 * kTileThreads;

/// The slices cut into such pieces, on the device.
scalecom::core::Array<WeightSlice> make_tiles(scalecom::core::Device device,
                                              std::span<const WeightSlice> slices);

}  // namespace train::optimizers::cuda
