#include "scalecom/core/hash.h"
#include "scalecom/kernels/cuda/chunks.cuh"
#include "scalecom/kernels/cuda/grid.cuh"
#include "scalecom/kernels/cuda/policy.h"
#include "scalecom/kernels/cuda/tile.cuh"

namespace scalecom::kernels::cuda {
namespace {

using Policy = policy::FirstPass;

// Draws the entry of each chunk that touches the tile, and takes those that lie in it.
template <typename Type>
__device__ void take_random(const Pass& pass, const Tile& tile) {
  const PartEntry& entry = pass.tables.d_parts[tile.part];
  const layout::Cut cut = entry.part.cut;
  const auto step = static_cast<std::uint64_t>(*pass.step.d_step);
  const std::uint64_t seed = core::combine(core::combine(pass.step.seed, step), entry.part.name);
  const std::int64_t first = tile.first_chunk - entry.part.first_chunk;
  for (std::uint32_t i = threadIdx.x; i < tile.items; i += Policy::kThreads) {
    const std::int64_t begin = (first + i) * cut.chunk;
    const auto size = static_cast<std::uint64_t>(min(cut.chunk, cut.length - begin));
    const auto chunk = static_cast<std::uint64_t>(entry.part.chunks_before + first + i);
    const std::uint64_t drawn = core::combine(seed, chunk) >> 32;
    const auto position =
        static_cast<std::uint32_t>(static_cast<std::uint64_t>(begin) + ((drawn * size) >> 32));
    if (position - tile.begin >= tile.elements) continue;  // before the tile, or after it
    take_entry<Type>(pass, entry.part, tile.first_item + i, position);
  }
}

template <typename Type, bool kRandom>
__global__ void __launch_bounds__(Policy::kThreads, Policy::kMinBlocks)
    accumulate_kernel(const __grid_constant__ Pass pass) {
  begin_step(pass);
  const std::int64_t block = blockIdx.x;
  if (block >= pass.tables.tiles) {
    load_dense<Type>(pass, pass.tables.d_dense_tiles[block - pass.tables.tiles]);
    return;
  }
  const Tile tile = pass.tables.d_tiles[block];
  visit_tile<Type, true, Policy::kThreads, Policy::kUnroll>(pass, tile, [](int, const auto&) {});
  if constexpr (kRandom) {
    __syncthreads();
    take_random<Type>(pass, tile);
  }
}

}  // namespace

void launch_accumulate(const Pass& pass, cudaStream_t stream) {
  const std::int64_t blocks = pass.tables.tiles + pass.tables.dense_tiles;
  if (blocks == 0) return;
  const bool random = pass.tables.kind == layout::Selection::Kind::kRandom;
  with_type(pass.step.dtype, [&](auto type) {
    using Type = decltype(type);
    const auto kernel = random ? accumulate_kernel<Type, true> : accumulate_kernel<Type, false>;
    kernel<<<blocks_for(blocks, 1), Policy::kThreads, 0, stream>>>(pass);
  });
  core::cuda::check(cudaGetLastError(), "accumulate");
}

}  // namespace scalecom::kernels::cuda
