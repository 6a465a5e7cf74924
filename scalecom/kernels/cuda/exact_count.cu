#include "scalecom/kernels/cuda/grid.cuh"
#include "scalecom/kernels/cuda/policy.h"
#include "scalecom/kernels/cuda/radix.cuh"
#include "scalecom/kernels/cuda/tile.cuh"

// The two passes of an exact selection that read all the data. The first counts keys by their upper
// bits; the second, which knows in which bin the last kept key lies, marks the keys above that bin
// and those in it, and counts the latter by the bits that follow.
namespace scalecom::kernels::cuda {
namespace {

using Policy = policy::Exact;
using Run = policy::FirstPass;

constexpr int kFirstShift = 31 - Policy::kFirstBits;
constexpr int kSecondShift = kFirstShift - Policy::kSecondBits;
static_assert(kSecondShift == Policy::kThirdBits);
static_assert(Policy::kSecondBits <= Policy::kFirstBits, "they share a histogram");
static_assert(Run::kRunElements % 128 == 0, "a warp fills whole words of a tile's bitmap");

template <int kBins>
__device__ void clear(std::uint32_t (&histogram)[kBins]) {
  for (int i = static_cast<int>(threadIdx.x); i < kBins; i += Policy::kThreads) histogram[i] = 0;
  __syncthreads();
}

// Adds a block's histogram to that of all. In the last block to do so, finds the threshold and
// leaves the histogram of all cleared for the next pass.
template <int kBins>
__device__ void merge(const Tables& tables, const std::uint32_t (&histogram)[kBins],
                      Threshold before, int bits, Threshold* d_after) {
  __syncthreads();
  for (int i = static_cast<int>(threadIdx.x); i < kBins; i += Policy::kThreads) {
    if (histogram[i] != 0) atomicAdd(&tables.d_histogram[i], histogram[i]);
  }
  if (!is_last_block(tables.d_state)) return;
  const Threshold within = find_bin<kBins, Policy::kThreads>(tables.d_histogram, before.wanted);
  if (threadIdx.x == 0) *d_after = {(before.bits << bits) | within.bits, within.wanted};
  __syncthreads();
  for (int i = static_cast<int>(threadIdx.x); i < kBins; i += Policy::kThreads) {
    tables.d_histogram[i] = 0;
  }
}

template <typename Type>
__global__ void __launch_bounds__(Policy::kThreads, Policy::kBlocksPerProcessor)
    exact_count_kernel(const __grid_constant__ Pass pass) {
  __shared__ std::uint32_t histogram[1 << Policy::kFirstBits];
  const Tables& tables = pass.tables;
  begin_step(pass);
  clear(histogram);
  for (std::int64_t t = blockIdx.x; t < tables.tiles + tables.dense_tiles; t += gridDim.x) {
    if (t >= tables.tiles) {
      load_dense<Type>(pass, tables.d_dense_tiles[t - tables.tiles]);
      continue;
    }
    const Tile tile = tables.d_tiles[t];
    visit_tile<Type, true, Policy::kThreads, Policy::kUnroll>(
        pass, tile, [&](int i, const auto& u) {
          constexpr int kWidth = sizeof(u) / sizeof(u[0]);
#pragma unroll
          for (int e = 0; e < kWidth; ++e) {
            if (i + e < static_cast<int>(tile.elements)) {
              atomicAdd(&histogram[magnitude_bits(u[e]) >> kFirstShift], 1U);
            }
          }
        });
  }
  merge(tables, histogram, {0, static_cast<std::uint32_t>(tables.items)}, Policy::kFirstBits,
        &tables.d_state->threshold[0]);
}

// Puts the bits of the lanes' groups together and writes them as words. Every lane calls it.
template <int kWidth>
__device__ void write_bits(std::uint32_t* d_words, int i, int elements, std::uint32_t bits) {
  constexpr int kLanesPerWord = 32 / kWidth;
  const int lane_in_word = static_cast<int>(threadIdx.x) % kLanesPerWord;
  bits <<= lane_in_word * kWidth;
#pragma unroll
  for (int distance = 1; distance < kLanesPerWord; distance *= 2) {
    bits |= __shfl_xor_sync(0xffffffffU, bits, distance);
  }
  if (lane_in_word == 0 && i < elements) d_words[i / 32] = bits;
}

template <typename Type>
__global__ void __launch_bounds__(Policy::kThreads, Policy::kBlocksPerProcessor)
    exact_mark_kernel(const __grid_constant__ Pass pass) {
  __shared__ std::uint32_t histogram[1 << Policy::kSecondBits];
  const Tables& tables = pass.tables;
  const Threshold threshold = tables.d_state->threshold[0];
  clear(histogram);
  for (std::int64_t t = blockIdx.x; t < tables.tiles; t += gridDim.x) {
    // From the end on, which the first pass has left in the cache.
    const std::int64_t back = tables.tiles - 1 - t;
    const Tile tile = tables.d_tiles[back];
    const std::int64_t word = back * (Run::kRunElements / 32);
    const auto elements = static_cast<int>(tile.elements);
    visit_tile<Type, false, Policy::kThreads, Policy::kUnroll>(
        pass, tile, [&](int i, const auto& u) {
          constexpr int kWidth = sizeof(u) / sizeof(u[0]);
          std::uint32_t above = 0;
          std::uint32_t equal = 0;
#pragma unroll
          for (int e = 0; e < kWidth; ++e) {
            const std::uint32_t key = magnitude_bits(u[e]);
            const std::uint32_t bin = key >> kFirstShift;
            if (i + e >= elements || bin < threshold.bits) continue;
            above |= (bin > threshold.bits ? 1U : 0U) << e;
            if (bin > threshold.bits) continue;
            equal |= 1U << e;
            atomicAdd(&histogram[(key >> kSecondShift) & ((1U << Policy::kSecondBits) - 1)], 1U);
          }
          write_bits<kWidth>(tables.d_above + word, i, elements, above);
          write_bits<kWidth>(tables.d_equal + word, i, elements, equal);
        });
  }
  merge(tables, histogram, threshold, Policy::kSecondBits, &tables.d_state->threshold[1]);
}

}  // namespace

void launch_exact_count(const Pass& pass, cudaStream_t stream) {
  const std::int64_t work = pass.tables.tiles + pass.tables.dense_tiles;
  if (work == 0) return;
  with_type(pass.step.dtype, [&](auto type) {
    exact_count_kernel<decltype(type)>
        <<<resident_blocks(work, Policy::kBlocksPerProcessor), Policy::kThreads, 0, stream>>>(pass);
  });
  core::cuda::check(cudaGetLastError(), "exact_count");
}

void launch_exact_mark(const Pass& pass, cudaStream_t stream) {
  if (pass.tables.tiles == 0) return;
  with_type(pass.step.dtype, [&](auto type) {
    exact_mark_kernel<decltype(type)>
        <<<resident_blocks(pass.tables.tiles, Policy::kBlocksPerProcessor), Policy::kThreads, 0,
           stream>>>(pass);
  });
  core::cuda::check(cudaGetLastError(), "exact_mark");
}

}  // namespace scalecom::kernels::cuda
