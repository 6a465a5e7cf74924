#include <cub/block/block_scan.cuh>

#include "scalecom/kernels/cuda/grid.cuh"
#include "scalecom/kernels/cuda/policy.h"
#include "scalecom/kernels/cuda/radix.cuh"
#include "scalecom/kernels/cuda/tile.cuh"

// The passes of an exact selection over its bitmaps, a word a thread and a tile a block. They read
// the keys that are still in doubt, few unless many are equal, and no others.
namespace scalecom::kernels::cuda {
namespace {

using Policy = policy::Exact;
constexpr int kThreads = Policy::kWordThreads;
constexpr int kThirdBins = 1 << Policy::kThirdBits;
static_assert(policy::FirstPass::kRunElements == 32 * kThreads);

// One thread's word of a tile in both bitmaps.
struct Words {
  __device__ Words(const Tables& tables, const Tile& tile)
      : index(tile.place + threadIdx.x), inside(32 * threadIdx.x < tile.elements) {
    if (!inside) return;
    above = tables.d_above[index];
    equal = tables.d_equal[index];
  }

  std::int64_t index;
  bool inside;
  std::uint32_t above = 0;
  std::uint32_t equal = 0;
};

// Looks at the keys in doubt: those whose bits from `shift` on are over the threshold's are marked
// above, those under it no more; same(key) is called for the rest.
template <typename Type, typename Same>
__device__ void sort_out(const Pass& pass, const Tile& tile, int shift, std::uint32_t threshold,
                         Words& words, Same same) {
  const auto* d_grad = gradient<Type>(pass, tile.grad) + 32 * threadIdx.x;
  const float* d_memory = tile.d_memory + 32 * threadIdx.x;
  for (std::uint32_t left = words.equal; left != 0; left &= left - 1) {
    const int bit = __ffs(static_cast<int>(left)) - 1;
    const std::uint32_t key = magnitude_bits(to_send(pass, Type::load(d_grad[bit]), d_memory[bit]));
    if (key >> shift == threshold) {
      same(key);
      continue;
    }
    words.equal &= ~(1U << bit);
    if (key >> shift > threshold) words.above |= 1U << bit;
  }
}

// Leaves in doubt what differs in the last bits at most, and counts it by those.
template <typename Type>
__global__ void __launch_bounds__(kThreads) exact_refine_kernel(const __grid_constant__ Pass pass) {
  __shared__ std::uint32_t histogram[kThirdBins];
  const Tables& tables = pass.tables;
  const Threshold threshold = tables.d_state->threshold[1];
  if (threadIdx.x < kThirdBins) histogram[threadIdx.x] = 0;
  __syncthreads();
  for (std::int64_t t = blockIdx.x; t < tables.tiles; t += gridDim.x) {
    const Tile tile = tables.d_tiles[t];
    Words words(tables, tile);
    if (words.equal == 0) continue;
    sort_out<Type>(pass, tile, Policy::kThirdBits, threshold.bits, words,
                   [&](std::uint32_t key) { atomicAdd(&histogram[key & (kThirdBins - 1)], 1U); });
    tables.d_above[words.index] = words.above;
    tables.d_equal[words.index] = words.equal;
  }
  __syncthreads();
  if (threadIdx.x < kThirdBins && histogram[threadIdx.x] != 0) {
    atomicAdd(&tables.d_histogram[threadIdx.x], histogram[threadIdx.x]);
  }
  if (!is_last_block(tables.d_state)) return;
  const Threshold within = find_bin<kThirdBins, kThreads>(tables.d_histogram, threshold.wanted);
  if (threadIdx.x == 0) {
    tables.d_state->threshold[2] = {(threshold.bits << Policy::kThirdBits) | within.bits,
                                    within.wanted};
  }
  __syncthreads();
  if (threadIdx.x < kThirdBins) tables.d_histogram[threadIdx.x] = 0;
}

// The tiles' counts become the counts before each tile.
__device__ void scan_tile_counts(const Tables& tables) {
  using Scan = cub::BlockScan<std::uint64_t, kThreads>;
  __shared__ typename Scan::TempStorage storage;
  constexpr int kItems = Policy::kScanItems;
  std::uint64_t before = 0;
  for (std::int64_t base = 0; base < tables.tiles; base += kThreads * kItems) {
    std::uint64_t counts[kItems];
    const std::int64_t first = base + std::int64_t{threadIdx.x} * kItems;
#pragma unroll
    for (int i = 0; i < kItems; ++i) {
      counts[i] = first + i < tables.tiles ? __ldcg(&tables.d_tile_counts[first + i]) : 0;
    }
    std::uint64_t total = 0;
    Scan(storage).ExclusiveSum(counts, counts, total);
#pragma unroll
    for (int i = 0; i < kItems; ++i) {
      if (first + i < tables.tiles) tables.d_tile_counts[first + i] = before + counts[i];
    }
    before += total;
    __syncthreads();
  }
}

// Nothing is in doubt afterwards: `equal` marks the keys at the threshold.
template <typename Type>
__global__ void __launch_bounds__(kThreads) exact_decide_kernel(const __grid_constant__ Pass pass) {
  using Scan = cub::BlockScan<std::uint64_t, kThreads>;
  __shared__ typename Scan::TempStorage storage;
  const Tables& tables = pass.tables;
  const Threshold threshold = tables.d_state->threshold[2];
  for (std::int64_t t = blockIdx.x; t < tables.tiles; t += gridDim.x) {
    const Tile tile = tables.d_tiles[t];
    Words words(tables, tile);
    if (words.equal != 0) {
      sort_out<Type>(pass, tile, 0, threshold.bits, words, [](std::uint32_t) {});
      tables.d_above[words.index] = words.above;
      tables.d_equal[words.index] = words.equal;
    }
    std::uint64_t before = 0;
    std::uint64_t total = 0;
    Scan(storage).ExclusiveSum(counts_of(__popc(words.above), __popc(words.equal)), before, total);
    if (threadIdx.x == 0) tables.d_tile_counts[t] = total;
    __syncthreads();
  }
  if (is_last_block(tables.d_state)) scan_tile_counts(tables);
}

// Takes a tile's marked entries, and as many of those at the threshold as are still wanted.
template <typename Type>
__global__ void __launch_bounds__(kThreads) exact_take_kernel(const __grid_constant__ Pass pass) {
  using Scan = cub::BlockScan<std::uint64_t, kThreads>;
  __shared__ typename Scan::TempStorage storage;
  const Tables& tables = pass.tables;
  const std::uint32_t wanted = tables.d_state->threshold[2].wanted;
  const Tile tile = tables.d_tiles[blockIdx.x];
  const std::uint64_t before_tile = tables.d_tile_counts[blockIdx.x];
  const Words words(tables, tile);
  std::uint64_t before = 0;
  Scan(storage).ExclusiveSum(counts_of(__popc(words.above), __popc(words.equal)), before);
  std::uint32_t above = above_count(before_tile) + above_count(before);
  std::uint32_t equal = equal_count(before_tile) + equal_count(before);
  if (tile.begin == 0 && threadIdx.x == 0) {
    tables.d_first_items[tile.part] = above + min(equal, wanted);
  }
  const auto* d_grad = gradient<Type>(pass, tile.grad) - tile.begin;
  const std::int64_t first = tables.d_parts[tile.part].first_element;
  for (std::uint32_t left = words.above | words.equal; left != 0; left &= left - 1) {
    const std::uint32_t bit = left & (~left + 1);
    const std::uint32_t item = above + min(equal, wanted);
    const bool is_above = (words.above & bit) != 0;
    const bool kept = is_above || equal < wanted;
    above += is_above ? 1 : 0;
    equal += is_above ? 0 : 1;
    if (!kept) continue;
    const std::uint32_t position =
        tile.begin + 32 * threadIdx.x + 31 - __clz(static_cast<int>(bit));
    take_entry<Type>(pass, d_grad, tile.d_memory - tile.begin, item, position);
    tables.d_absolute[item] = static_cast<std::uint32_t>(first) + position;
  }
}

}  // namespace

void launch_exact_refine(const Pass& pass, cudaStream_t stream) {
  if (pass.tables.tiles == 0) return;
  with_type(pass.step.dtype, [&](auto type) {
    exact_refine_kernel<decltype(type)>
        <<<resident_blocks(pass.tables.tiles, Policy::kWordBlocksPerProcessor), kThreads, 0,
           stream>>>(pass);
  });
  core::cuda::check(cudaGetLastError(), "exact_refine");
}

void launch_exact_decide(const Pass& pass, cudaStream_t stream) {
  if (pass.tables.tiles == 0) return;
  with_type(pass.step.dtype, [&](auto type) {
    exact_decide_kernel<decltype(type)>
        <<<resident_blocks(pass.tables.tiles, Policy::kWordBlocksPerProcessor), kThreads, 0,
           stream>>>(pass);
  });
  core::cuda::check(cudaGetLastError(), "exact_decide");
}

void launch_exact_take(const Pass& pass, cudaStream_t stream) {
  if (pass.tables.tiles == 0) return;
  with_type(pass.step.dtype, [&](auto type) {
    exact_take_kernel<decltype(type)>
        <<<blocks_for(pass.tables.tiles, 1), kThreads, 0, stream>>>(pass);
  });
  core::cuda::check(cudaGetLastError(), "exact_take");
}

}  // namespace scalecom::kernels::cuda
