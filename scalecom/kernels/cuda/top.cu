#include <cub/block/block_scan.cuh>

#include "scalecom/kernels/cuda/chunks.cuh"
#include "scalecom/kernels/cuda/grid.cuh"
#include "scalecom/kernels/cuda/policy.h"
#include "scalecom/kernels/cuda/radix.cuh"
#include "scalecom/kernels/cuda/stage.cuh"

namespace scalecom::kernels::cuda {
namespace {

using Policy = policy::FirstPass;

constexpr int kWarp = 32;
constexpr unsigned kAllLanes = 0xffffffffU;
constexpr int kKeyBits = 31;

// How many of a warp's `count` keys from place `begin` on are at least `bound`.
__device__ int count_from(const Stage& stage, int begin, int count, std::uint32_t bound) {
  int found = 0;
  for (int i = static_cast<int>(threadIdx.x) % kWarp; i < count; i += kWarp) {
    found += stage.key(begin + i) >= bound ? 1 : 0;
  }
  return __reduce_add_sync(kAllLanes, found);
}

// A bound that `keep` keys reach, or more where they are equal to it: found bit by bit from the
// highest on, until exactly as many are left as are wanted.
__device__ std::uint32_t find_bound(const Stage& stage, int begin, int count, int keep) {
  std::uint32_t bound = 0;
  int reach = count;
  for (int bit = kKeyBits - 1; bit >= 0 && reach > keep; --bit) {
    const std::uint32_t higher = bound | (1U << bit);
    const int found = count_from(stage, begin, count, higher);
    if (found < keep) continue;
    bound = higher;
    reach = found;
  }
  return bound;
}

// Takes the `keep` largest of a chunk by a warp, the lowest places among equals, in their order.
__device__ void take_top(const Pass& pass, const Tile& tile, Stage& stage, int begin, int count,
                         int keep, std::int64_t first_item) {
  const std::uint32_t bound = find_bound(stage, begin, count, keep);
  int equals_left = keep - count_from(stage, begin, count, bound + 1);
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  const unsigned before = (1U << lane) - 1;
  for (int base = 0; base < count; base += kWarp) {
    const int i = base + lane;
    const std::uint32_t key = i < count ? stage.key(begin + i) : 0;
    const unsigned equal = __ballot_sync(kAllLanes, i < count && key == bound);
    const bool kept =
        i < count && (key > bound || (key == bound && __popc(equal & before) < equals_left));
    const unsigned all_kept = __ballot_sync(kAllLanes, kept);
    if (kept) stage.take(pass, tile, first_item + __popc(all_kept & before), begin + i);
    equals_left -= min(equals_left, __popc(equal));
    first_item += __popc(all_kept);
  }
}

__device__ void top_chunks(const Pass& pass, const Tile& tile, Stage& stage) {
  const layout::Cut cut = pass.tables.d_parts[tile.part].part.cut;
  const ChunkRange named = named_chunks(pass);
  const auto chunk = static_cast<int>(tile.chunk);
  const auto elements = static_cast<int>(tile.elements);
  constexpr int kWarps = Policy::kThreads / kWarp;
  for (int c = static_cast<int>(threadIdx.x) / kWarp; c * chunk < elements; c += kWarps) {
    if (!named.contains(tile.first_chunk + c)) continue;
    const int begin = c * chunk;
    const int count = min(chunk, elements - begin);
    const auto keep = static_cast<int>(count == chunk ? cut.keep : cut.keep_tail);
    take_top(pass, tile, stage, begin, count, keep, tile.first_item + c * cut.keep);
  }
}

template <typename Type>
__global__ void __launch_bounds__(Policy::kThreads) top_kernel(const __grid_constant__ Pass pass) {
  extern __shared__ uint4 shared[];
  begin_step(pass);
  const std::int64_t block = blockIdx.x;
  if (block >= pass.tables.tiles) {
    load_dense<Type>(pass, pass.tables.d_dense_tiles[block - pass.tables.tiles]);
    return;
  }
  const Tile tile = pass.tables.d_tiles[block];
  Stage stage(shared, pass.tables.tile_elements);
  stage.load<Type, Policy::kThreads>(pass, tile);
  if (tile.whole_chunks != 0) top_chunks(pass, tile, stage);
  __syncthreads();
  stage.store<Type, Policy::kThreads>(tile);
}

// A chunk too long for a tile, of one block.
template <typename Type>
struct LongChunk {
  const typename Type::Stored* d_grad;  // of its part
  float* d_memory;
  std::int64_t begin;
  std::int64_t end;
  std::int64_t first_item;
  std::uint32_t keep;

  __device__ std::uint32_t key(const Pass& pass, std::int64_t i) const {
    return magnitude_bits(to_send(pass, Type::load(d_grad[i]), d_memory[i]));
  }
};

using Long = policy::LongTop;
constexpr int kMostBins = 1 << Long::kFirstBits;
static_assert(Long::kFirstBits >= Long::kNextBits, "they share a histogram");
static_assert((kKeyBits - Long::kFirstBits) % Long::kNextBits == 0);

// The key that the last of the kept ones has, and how many keys equal to it are kept.
template <typename Type>
__device__ Threshold find_threshold(const Pass& pass, const LongChunk<Type>& chunk) {
  __shared__ std::uint32_t histogram[kMostBins];
  Threshold threshold{0, chunk.keep};
  int bits = Long::kFirstBits;
  for (int shift = kKeyBits; shift > 0; shift -= bits, bits = Long::kNextBits) {
    for (int i = static_cast<int>(threadIdx.x); i < kMostBins; i += Long::kThreads) {
      histogram[i] = 0;
    }
    __syncthreads();
    for (std::int64_t i = chunk.begin + threadIdx.x; i < chunk.end; i += Long::kThreads) {
      const std::uint32_t key = chunk.key(pass, i);
      if (key >> shift != threshold.bits) continue;
      atomicAdd(&histogram[(key >> (shift - bits)) & ((1U << bits) - 1)], 1U);
    }
    __syncthreads();
    const Threshold within = find_bin<kMostBins, Long::kThreads>(histogram, threshold.wanted);
    threshold = {(threshold.bits << bits) | within.bits, within.wanted};
    __syncthreads();
  }
  return threshold;
}

template <typename Type>
__device__ void take_long_top(const Pass& pass, const LongChunk<Type>& chunk) {
  using Scan = cub::BlockScan<std::uint64_t, Long::kThreads>;
  __shared__ typename Scan::TempStorage storage;
  const Threshold threshold = find_threshold(pass, chunk);
  std::uint32_t equal_before = 0;
  std::uint32_t above_before = 0;
  for (std::int64_t base = chunk.begin; base < chunk.end; base += Long::kThreads) {
    const std::int64_t i = base + threadIdx.x;
    const std::uint32_t key = i < chunk.end ? chunk.key(pass, i) : 0;
    const bool above = i < chunk.end && key > threshold.bits;
    const bool equal = i < chunk.end && key == threshold.bits;
    std::uint64_t before = 0;
    std::uint64_t total = 0;
    Scan(storage).ExclusiveSum(counts_of(above ? 1 : 0, equal ? 1 : 0), before, total);
    const std::uint32_t equal_here = equal_before + equal_count(before);
    if (above || (equal && equal_here < threshold.wanted)) {
      const std::uint32_t in_chunk =
          above_before + above_count(before) + min(equal_here, threshold.wanted);
      take_entry<Type>(pass, chunk.d_grad, chunk.d_memory, chunk.first_item + in_chunk,
                       static_cast<std::uint32_t>(i));
    }
    above_before += above_count(total);
    equal_before += equal_count(total);
    __syncthreads();
  }
}

template <typename Type>
__global__ void __launch_bounds__(Long::kThreads)
    long_top_kernel(const __grid_constant__ Pass pass) {
  const std::int64_t index = blockIdx.x;
  const PartEntry& entry = pass.tables.d_parts[part_of_long_chunk(pass.tables, index)];
  const layout::Cut cut = entry.part.cut;
  const std::int64_t c = index - entry.first_long;
  if (!named_chunks(pass).contains(entry.part.first_chunk + c)) return;
  const std::int64_t begin = c * cut.chunk;
  const std::int64_t end = min(begin + cut.chunk, cut.length);
  const std::int64_t keep = end - begin == cut.chunk ? cut.keep : cut.keep_tail;
  take_long_top<Type>(pass,
                      {gradient<Type>(pass, entry.part.offset), entry.part.d_memory, begin, end,
                       entry.part.first_item + c * cut.keep, static_cast<std::uint32_t>(keep)});
}

}  // namespace

void launch_top(const Pass& pass, cudaStream_t stream) {
  const std::int64_t blocks = pass.tables.tiles + pass.tables.dense_tiles;
  if (blocks == 0) return;
  with_type(pass.step.dtype, [&](auto type) {
    const auto kernel = top_kernel<decltype(type)>;
    const std::size_t shared = allow_stage(kernel, pass.tables.tile_elements, 0);
    kernel<<<blocks_for(blocks, 1), Policy::kThreads, shared, stream>>>(pass);
  });
  core::cuda::check(cudaGetLastError(), "top");
}

void launch_long_top(const Pass& pass, cudaStream_t stream) {
  if (pass.tables.long_chunks == 0) return;
  with_type(pass.step.dtype, [&](auto type) {
    long_top_kernel<decltype(type)>
        <<<blocks_for(pass.tables.long_chunks, 1), Long::kThreads, 0, stream>>>(pass);
  });
  core::cuda::check(cudaGetLastError(), "long_top");
}

}  // namespace scalecom::kernels::cuda
