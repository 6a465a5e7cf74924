#include "scalecom/kernels/cuda/grid.cuh"
#include "scalecom/kernels/cuda/policy.h"
#include "scalecom/kernels/cuda/radix.cuh"
#include "scalecom/kernels/cuda/sift.cuh"
#include "scalecom/kernels/cuda/tile.cuh"

// The two passes of an exact selection that may read all the data. The first counts keys by their
// upper bits; the second, which knows in which bin the last kept key lies, marks the keys above
// that bin and those in it, and counts the latter by the bits that follow. From step to step that
// bin hardly changes: the first pass already marks what lies near the last one or above it, and
// where that was no mistake, the second looks at those entries alone.
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

// Adds a block's histogram to that of all. In the last block to do so, finds the threshold, calls
// look(bin) while the histogram of all is there, and leaves it cleared for the next pass.
template <int kBins, typename Look>
__device__ void merge(const Tables& tables, const std::uint32_t (&histogram)[kBins],
                      Threshold before, int bits, Threshold* d_after, Look look) {
  __syncthreads();
  for (int i = static_cast<int>(threadIdx.x); i < kBins; i += Policy::kThreads) {
    if (histogram[i] != 0) atomicAdd(&tables.d_histogram[i], histogram[i]);
  }
  if (!is_last_block(tables.d_state)) return;
  const Threshold within = find_bin<kBins, Policy::kThreads>(tables.d_histogram, before.wanted);
  if (threadIdx.x == 0) *d_after = {(before.bits << bits) | within.bits, within.wanted};
  look(within.bits);
  __syncthreads();
  for (int i = static_cast<int>(threadIdx.x); i < kBins; i += Policy::kThreads) {
    tables.d_histogram[i] = 0;
  }
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

// The bin from which on the first pass marks keys; 0 where there is nothing to go by.
__device__ std::uint32_t guess(const Tables& tables) {
  const std::uint32_t last = tables.d_state->threshold[0].bits;
  return last > Policy::kGuessMargin ? last - Policy::kGuessMargin : 0;
}

// Whether the marks are all that the second pass needs, and few. By the last block, which has the
// threshold, while the histogram is still there.
template <int kBins>
__device__ bool guessed_well(const Tables& tables, std::uint32_t guess, std::uint32_t bin) {
  __shared__ unsigned long long marked;
  if (threadIdx.x == 0) marked = 0;
  __syncthreads();
  unsigned long long mine = 0;
  for (std::uint32_t b = guess + threadIdx.x; b < kBins; b += Policy::kThreads) {
    mine += *static_cast<volatile std::uint32_t*>(tables.d_histogram + b);
  }
  atomicAdd(&marked, mine);
  __syncthreads();
  return guess > 0 && guess <= bin &&
         marked * Policy::kMarkedOneIn <= static_cast<std::uint64_t>(tables.compressed_elements);
}

template <typename Type>
__global__ void __launch_bounds__(Policy::kThreads, Policy::kBlocksPerProcessor)
    exact_count_kernel(const __grid_constant__ Pass pass) {
  __shared__ std::uint32_t histogram[1 << Policy::kFirstBits];
  const Tables& tables = pass.tables;
  const std::uint32_t mark_from = guess(tables);
  begin_step(pass);
  clear(histogram);
  for (std::int64_t t = blockIdx.x; t < tables.tiles + tables.dense_tiles; t += gridDim.x) {
    if (t >= tables.tiles) {
      load_dense<Type>(pass, tables.d_dense_tiles[t - tables.tiles]);
      continue;
    }
    const Tile tile = tables.d_tiles[t];
    const auto elements = static_cast<int>(tile.elements);
    visit_tile<Type, true, Policy::kThreads, Policy::kUnroll>(
        pass, tile, [&](int i, const auto& u) {
          constexpr int kWidth = sizeof(u) / sizeof(u[0]);
          std::uint32_t marks = 0;
#pragma unroll
          for (int e = 0; e < kWidth; ++e) {
            if (i + e >= elements) continue;
            const std::uint32_t bin = magnitude_bits(u[e]) >> kFirstShift;
            atomicAdd(&histogram[bin], 1U);
            marks |= (bin >= mark_from ? 1U : 0U) << e;
          }
          write_bits<kWidth>(tables.d_equal + t * kTileWords, i, elements, marks);
        });
  }
  merge(tables, histogram, {0, static_cast<std::uint32_t>(tables.items)}, Policy::kFirstBits,
        &tables.d_state->threshold[0], [&](std::uint32_t bin) {
          const bool well = guessed_well<1 << Policy::kFirstBits>(tables, mark_from, bin);
          if (threadIdx.x == 0) tables.d_state->marked_ahead = well ? 1 : 0;
        });
}

constexpr std::uint32_t kSecondMask = (1U << Policy::kSecondBits) - 1;

// Marks a tile by all of its keys.
template <typename Type>
__device__ void mark_tile(const Pass& pass, std::int64_t t, std::uint32_t threshold,
                          std::uint32_t* histogram) {
  const Tables& tables = pass.tables;
  const Tile tile = tables.d_tiles[t];
  const auto elements = static_cast<int>(tile.elements);
  visit_tile<Type, false, Policy::kThreads, Policy::kUnroll>(pass, tile, [&](int i, const auto& u) {
    constexpr int kWidth = sizeof(u) / sizeof(u[0]);
    std::uint32_t above = 0;
    std::uint32_t equal = 0;
#pragma unroll
    for (int e = 0; e < kWidth; ++e) {
      const std::uint32_t key = magnitude_bits(u[e]);
      const std::uint32_t bin = key >> kFirstShift;
      if (i + e >= elements || bin < threshold) continue;
      above |= (bin > threshold ? 1U : 0U) << e;
      if (bin > threshold) continue;
      equal |= 1U << e;
      atomicAdd(&histogram[(key >> kSecondShift) & kSecondMask], 1U);
    }
    write_bits<kWidth>(tables.d_above + t * kTileWords, i, elements, above);
    write_bits<kWidth>(tables.d_equal + t * kTileWords, i, elements, equal);
  });
}

// Marks a tile by those of its keys that the first pass has marked.
template <typename Type>
__device__ void mark_again(const Pass& pass, std::int64_t t, std::uint32_t threshold,
                           std::uint32_t* histogram) {
  const Tables& tables = pass.tables;
  sift<Type>(
      pass, WarpTile(t),
      [&](std::uint32_t key) {
        const std::uint32_t bin = key >> kFirstShift;
        if (bin != threshold) return bin > threshold ? Verdict::kAbove : Verdict::kUnder;
        atomicAdd(&histogram[(key >> kSecondShift) & kSecondMask], 1U);
        return Verdict::kSame;
      },
      [&](std::int64_t word, std::uint32_t, std::uint32_t above, std::uint32_t equal) {
        tables.d_above[word] = above;
        tables.d_equal[word] = equal;
      });
}

template <typename Type>
__global__ void __launch_bounds__(Policy::kThreads, Policy::kBlocksPerProcessor)
    exact_mark_kernel(const __grid_constant__ Pass pass) {
  __shared__ std::uint32_t histogram[1 << Policy::kSecondBits];
  const Tables& tables = pass.tables;
  const Threshold threshold = tables.d_state->threshold[0];
  clear(histogram);
  // From the end on, which the first pass has left in the cache.
  if (tables.d_state->marked_ahead != 0) {
    constexpr int kWarps = Policy::kThreads / 32;
    for (std::int64_t t = blockIdx.x + std::int64_t{threadIdx.x / 32} * gridDim.x; t < tables.tiles;
         t += std::int64_t{kWarps} * gridDim.x) {
      mark_again<Type>(pass, tables.tiles - 1 - t, threshold.bits, histogram);
    }
  } else {
    for (std::int64_t t = blockIdx.x; t < tables.tiles; t += gridDim.x) {
      mark_tile<Type>(pass, tables.tiles - 1 - t, threshold.bits, histogram);
    }
  }
  merge(tables, histogram, threshold, Policy::kSecondBits, &tables.d_state->threshold[1],
        [](std::uint32_t) {});
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
