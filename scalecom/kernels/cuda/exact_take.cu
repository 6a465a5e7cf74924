#include <cub/block/block_scan.cuh>

#include "scalecom/kernels/cuda/grid.cuh"
#include "scalecom/kernels/cuda/policy.h"
#include "scalecom/kernels/cuda/radix.cuh"
#include "scalecom/kernels/cuda/sift.cuh"

// The passes of an exact selection over its bitmaps. They read the keys that are still in doubt,
// few unless many are equal, and no others.
namespace scalecom::kernels::cuda {
namespace {

using Policy = policy::Exact;
constexpr int kThreads = Policy::kWordThreads;
constexpr int kThirdBins = 1 << Policy::kThirdBits;
constexpr int kWarp = 32;
constexpr unsigned kAllLanes = 0xffffffffU;
static_assert(kTileWords == kThreads, "a word a thread where a block takes a tile");

// Settles what it can of the entries in doubt: those whose bits from `shift` on are over the
// threshold's are marked above, those under it no more; same(key) is called for the rest.
template <typename Type, typename Same>
__device__ void sort_out(const Pass& pass, const WarpTile& where, int shift,
                         std::uint32_t threshold, Same same) {
  const Tables& tables = pass.tables;
  sift<Type>(
      pass, where,
      [&](std::uint32_t key) {
        const std::uint32_t bits = key >> shift;
        if (bits == threshold) same(key);
        return bits == threshold  ? Verdict::kSame
               : bits > threshold ? Verdict::kAbove
                                  : Verdict::kUnder;
      },
      [&](std::int64_t word, std::uint32_t marked, std::uint32_t above, std::uint32_t equal) {
        if (equal != marked) tables.d_equal[word] = equal;
        if (above != 0) tables.d_above[word] |= above;
      });
}

__device__ WarpTile tile_of_warp() {
  return WarpTile(std::int64_t{blockIdx.x} * (kThreads / kWarp) + threadIdx.x / kWarp);
}

// Leaves in doubt what differs in the last bits at most, and counts it by those.
template <typename Type>
__global__ void __launch_bounds__(kThreads) exact_refine_kernel(const __grid_constant__ Pass pass) {
  __shared__ std::uint32_t histogram[kThirdBins];
  const Tables& tables = pass.tables;
  const Threshold threshold = tables.d_state->threshold[1];
  if (threadIdx.x < kThirdBins) histogram[threadIdx.x] = 0;
  __syncthreads();
  const WarpTile where = tile_of_warp();
  if (where.number < tables.tiles && LaneWords(tables.d_equal, where.first_word).any()) {
    sort_out<Type>(pass, where, Policy::kThirdBits, threshold.bits,
                   [&](std::uint32_t key) { atomicAdd(&histogram[key & (kThirdBins - 1)], 1U); });
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
  const Tables& tables = pass.tables;
  const Threshold threshold = tables.d_state->threshold[2];
  const WarpTile where = tile_of_warp();
  if (where.number < tables.tiles) {
    if (LaneWords(tables.d_equal, where.first_word).any()) {
      sort_out<Type>(pass, where, 0, threshold.bits, [](std::uint32_t) {});
    }
    const unsigned above =
        __reduce_add_sync(kAllLanes, LaneWords(tables.d_above, where.first_word).count());
    const unsigned equal =
        __reduce_add_sync(kAllLanes, LaneWords(tables.d_equal, where.first_word).count());
    if (where.lane == 0) tables.d_tile_counts[where.number] = counts_of(above, equal);
  }
  if (is_last_block(tables.d_state)) scan_tile_counts(tables);
}

// Takes a tile's marked entries, and as many of those at the threshold as are still wanted: first
// their places in the tile, in order, then a thread an entry.
template <typename Type>
__global__ void __launch_bounds__(kThreads) exact_take_kernel(const __grid_constant__ Pass pass) {
  using Scan = cub::BlockScan<std::uint64_t, kThreads>;
  __shared__ typename Scan::TempStorage storage;
  __shared__ std::uint16_t places[32 * kTileWords];
  const Tables& tables = pass.tables;
  const std::uint32_t wanted = tables.d_state->threshold[2].wanted;
  const std::int64_t word = std::int64_t{blockIdx.x} * kTileWords + threadIdx.x;
  const std::uint64_t before_tile = tables.d_tile_counts[blockIdx.x];
  const std::uint32_t above_bits = tables.d_above[word];
  const std::uint32_t equal_bits = tables.d_equal[word];
  const Tile tile = tables.d_tiles[blockIdx.x];
  std::uint64_t before = 0;
  std::uint64_t total = 0;
  Scan(storage).ExclusiveSum(counts_of(__popc(above_bits), __popc(equal_bits)), before, total);
  // Items, as they come before a count of entries.
  const auto items_in = [&](std::uint64_t counts) {
    return above_count(counts) + min(equal_count(counts), wanted);
  };
  const std::uint32_t first_item = items_in(before_tile);
  const std::uint32_t items = items_in(before_tile + total) - first_item;
  std::uint64_t counts = before_tile + before;
  for (std::uint32_t left = above_bits | equal_bits; left != 0; left &= left - 1) {
    const int bit = __ffs(static_cast<int>(left)) - 1;
    const bool above = ((above_bits >> bit) & 1U) != 0;
    const std::uint64_t after = counts + (above ? counts_of(1, 0) : counts_of(0, 1));
    if (items_in(after) > items_in(counts)) {
      places[items_in(counts) - first_item] =
          static_cast<std::uint16_t>(32 * static_cast<int>(threadIdx.x) + bit);
    }
    counts = after;
  }
  __syncthreads();
  if (threadIdx.x == 0) {
    tables.d_tile_items[blockIdx.x] = first_item;
    if (tile.begin == 0) tables.d_first_items[tile.part] = first_item;
  }
  const auto* d_grad = gradient<Type>(pass, tile.grad) - tile.begin;
  const auto first_element = static_cast<std::uint32_t>(tables.d_parts[tile.part].first_element);
  for (std::uint32_t i = threadIdx.x; i < items; i += kThreads) {
    const std::uint32_t position = tile.begin + places[i];
    take_entry<Type>(pass, d_grad, tile.d_memory - tile.begin, first_item + i, position);
    tables.d_absolute[first_item + i] = first_element + position;
  }
}

}  // namespace

void launch_exact_refine(const Pass& pass, cudaStream_t stream) {
  if (pass.tables.tiles == 0) return;
  with_type(pass.step.dtype, [&](auto type) {
    exact_refine_kernel<decltype(type)>
        <<<blocks_for(pass.tables.tiles, kThreads / kWarp), kThreads, 0, stream>>>(pass);
  });
  core::cuda::check(cudaGetLastError(), "exact_refine");
}

void launch_exact_decide(const Pass& pass, cudaStream_t stream) {
  if (pass.tables.tiles == 0) return;
  with_type(pass.step.dtype, [&](auto type) {
    exact_decide_kernel<decltype(type)>
        <<<blocks_for(pass.tables.tiles, kThreads / kWarp), kThreads, 0, stream>>>(pass);
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
