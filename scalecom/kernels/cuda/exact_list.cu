#include <cub/block/block_scan.cuh>

#include "scalecom/core/hash.h"
#include "scalecom/kernels/cuda/grid.cuh"
#include "scalecom/kernels/cuda/policy.h"
#include "scalecom/kernels/cuda/radix.cuh"
#include "scalecom/kernels/cuda/tile.cuh"

// What an exact selection does while it goes over the data. A look at a few entries tells roughly
// where the threshold lies. The pass counts all keys by their upper bits, and lists the entries
// that reach the guess: nearly always these are all that are kept, and few more.
namespace scalecom::kernels::cuda {
namespace {

using Policy = policy::Exact;
constexpr int kThreads = Policy::kThreads;
constexpr int kBins = 1 << Policy::kFirstBits;
constexpr int kFirstShift = 31 - Policy::kFirstBits;
constexpr int kRunElements = policy::FirstPass::kRunElements;
constexpr int kTileWords = kRunElements / 32;
static_assert(kRunElements % 128 == 0, "a warp fills whole words of a tile's marks");
static_assert(kThreads >= kTileWords);
static_assert(kRunElements <= 1 << 16, "places in a tile have 16 bits");

using Histogram = BlockHistogram<kBins, kThreads>;

__device__ std::uint32_t bin_of(float u) {
  return magnitude_bits(u) >> kFirstShift;
}

// How many of `looks` at entries are expected to find one that is kept, and some more.
__device__ unsigned guessed_rank(const Tables& tables, unsigned looks) {
  const float expected = static_cast<float>(tables.items) * static_cast<float>(looks) /
                         static_cast<float>(tables.tiles * kRunElements);
  return static_cast<unsigned>(expected + Policy::kGuessDeviations * (sqrtf(expected) + 1.0F));
}

// The key of one entry of a thread's stretch of all tiles, as if they were of full length; 0 where
// there is none.
template <typename Type>
__device__ std::uint32_t look_at_one(const Pass& pass, std::int64_t thread, std::int64_t threads) {
  const auto stretch = static_cast<std::uint64_t>(pass.tables.tiles * kRunElements / threads);
  const std::uint64_t turn = core::mix(static_cast<std::uint64_t>(thread)) >> 32;
  const std::uint64_t element =
      static_cast<std::uint64_t>(thread) * stretch + ((turn * stretch) >> 32);
  const Tile& tile = pass.tables.d_tiles[element / kRunElements];
  const std::uint64_t place = element % kRunElements;
  if (place >= tile.elements) return 0;
  const float g = Type::load(gradient<Type>(pass, tile.grad)[place]);
  const float m = filtered(pass.step.filter, g, tile.d_memory[place]);
  return magnitude_bits(to_send(pass, g, m));
}

// The `wanted`-th largest of a block's keys, rounded down to its upper bits; 0 where there are
// fewer. All threads get it.
template <int kPerThread>
__device__ std::uint32_t ranked_key(const std::uint32_t (&keys)[kPerThread], unsigned wanted) {
  constexpr int kWarp = 32;
  constexpr int kWarps = Policy::kGuessThreads / kWarp;
  static_assert(kWarps == kWarp, "the lanes of a warp add up the sums of all");
  __shared__ unsigned reached[2][kWarps];  // in turn, so that the block meets once a bit
  const unsigned lane = threadIdx.x % kWarp;
  std::uint32_t found = 0;
  for (int bit = 30; bit > 30 - Policy::kGuessBits; --bit) {
    const std::uint32_t higher = found | 1U << bit;
    unsigned own = 0;
#pragma unroll
    for (int k = 0; k < kPerThread; ++k) own += keys[k] >= higher ? 1 : 0;
    own = __reduce_add_sync(0xffffffffU, own);
    if (lane == 0) reached[bit % 2][threadIdx.x / kWarp] = own;
    __syncthreads();
    if (__reduce_add_sync(0xffffffffU, reached[bit % 2][lane]) >= wanted) found = higher;
  }
  return found;
}

template <typename Type>
__global__ void __launch_bounds__(Policy::kGuessThreads)
    exact_guess_kernel(const __grid_constant__ Pass pass) {
  const Tables& tables = pass.tables;
  const unsigned thread = blockIdx.x * Policy::kGuessThreads + threadIdx.x;
  const unsigned threads = gridDim.x * Policy::kGuessThreads;
  tables.d_sample[thread] = look_at_one<Type>(pass, thread, threads);
  if (!is_last_block(tables.d_state)) return;
  std::uint32_t keys[Policy::kGuessBlocks];
#pragma unroll
  for (unsigned k = 0; k < Policy::kGuessBlocks; ++k) {
    keys[k] = k < gridDim.x ? __ldcg(&tables.d_sample[k * Policy::kGuessThreads + threadIdx.x]) : 0;
  }
  const std::uint32_t guess = ranked_key(keys, guessed_rank(tables, threads));
  if (threadIdx.x != 0) return;
  tables.d_state->guess = guess;
  tables.d_state->listed = 0;
}

// Puts the bits of the lanes' groups together and writes them as words. Every lane calls it.
template <int kWidth>
__device__ void write_bits(std::uint32_t* words, int i, int elements, std::uint32_t bits) {
  constexpr int kLanesPerWord = 32 / kWidth;
  const int lane_in_word = static_cast<int>(threadIdx.x) % kLanesPerWord;
  bits <<= lane_in_word * kWidth;
#pragma unroll
  for (int distance = 1; distance < kLanesPerWord; distance *= 2) {
    bits |= __shfl_xor_sync(0xffffffffU, bits, distance);
  }
  if (lane_in_word == 0 && i < elements) words[i / 32] = bits;
}

// A tile's candidates: a bit an element, and how many lie before each word.
struct Marks {
  std::uint32_t words[kTileWords];
  std::uint32_t before[kTileWords];

  // The place of the i-th.
  __device__ int place(std::uint32_t i) const {
    const int word = last_not_above(kTileWords, i, [&](int w) { return before[w]; });
    std::uint32_t left = words[word];
    for (std::uint32_t k = before[word]; k < i; ++k) left &= left - 1;
    return 32 * word + __ffs(static_cast<int>(left)) - 1;
  }
};

// Two, as a warp may be ahead of another by a tile.
struct ListStorage {
  Marks marks[2];
  typename cub::BlockScan<std::uint32_t, kThreads>::TempStorage scan;
  std::uint32_t first[2];
};

// Accumulates tile `t`, counts its keys, and lists the entries whose keys are `from` or above.
// `turn` alternates from call to call.
template <typename Type>
__device__ void list_tile(const Pass& pass, std::int64_t t, std::uint32_t from, int turn,
                          ListStorage& storage, Histogram& histogram) {
  const Tables& tables = pass.tables;
  const Tile tile = tables.d_tiles[t];
  const auto elements = static_cast<int>(tile.elements);
  Marks& marks = storage.marks[turn];
  visit_tile<Type, true, kThreads, Policy::kUnroll>(pass, tile, [&](int i, const auto& u) {
    constexpr int kWidth = sizeof(u) / sizeof(u[0]);
    std::uint32_t bits = 0;
#pragma unroll
    for (int e = 0; e < kWidth; ++e) {
      if (i + e >= elements) continue;
      histogram.add(bin_of(u[e]));
      bits |= (magnitude_bits(u[e]) >= from ? 1U : 0U) << e;
    }
    write_bits<kWidth>(marks.words, i, elements, bits);
  });
  __syncthreads();

  const auto own = static_cast<int>(threadIdx.x);
  const bool has_word = 32 * own < elements;
  std::uint32_t before = 0;
  std::uint32_t total = 0;
  cub::BlockScan<std::uint32_t, kThreads>(storage.scan)
      .ExclusiveSum(has_word ? static_cast<std::uint32_t>(__popc(marks.words[own])) : 0, before,
                    total);
  if (own < kTileWords) marks.before[own] = before;
  if (own == 0) {
    const std::uint32_t first = total == 0 ? 0 : atomicAdd(&tables.d_state->listed, total);
    storage.first[turn] = first;
    tables.d_segments[t] = {first, total};
  }
  __syncthreads();

  const std::int64_t first = storage.first[turn];
  if (first + total > tables.list_capacity) return;
  const auto* d_grad = gradient<Type>(pass, tile.grad);
  for (std::uint32_t i = threadIdx.x; i < total; i += kThreads) {
    const int place = marks.place(i);
    const float m = tile.d_memory[place];
    tables.list.d_place[first + i] = static_cast<std::uint16_t>(place);
    tables.list.d_u[first + i] = to_send(pass, Type::load(d_grad[place]), m);
    tables.list.d_memory[first + i] = m;
  }
}

template <typename Type>
__global__ void __launch_bounds__(kThreads, Policy::kBlocksPerProcessor)
    exact_list_kernel(const __grid_constant__ Pass pass) {
  __shared__ std::uint32_t counts[kBins];
  __shared__ ListStorage storage;
  const Tables& tables = pass.tables;
  const std::uint32_t guess = tables.d_state->guess;
  begin_step(pass);
  if (blockIdx.x == 0) {
    for (int i = static_cast<int>(threadIdx.x); i < Policy::kMostTakeBlocks; i += kThreads) {
      tables.d_block_counts[i].known = 0;
    }
  }
  Histogram histogram(counts);
  int turn = 0;
  for (std::int64_t t = blockIdx.x; t < tables.tiles + tables.dense_tiles; t += gridDim.x) {
    if (t < tables.tiles) {
      list_tile<Type>(pass, t, guess, turn, storage, histogram);
      turn = 1 - turn;
    } else {
      load_dense<Type>(pass, tables.d_dense_tiles[t - tables.tiles]);
    }
  }
  histogram.merge(tables);
  find_in_last_block<kBins, kThreads>(
      tables, static_cast<std::uint32_t>(tables.items), [&](Threshold within) {
        State& state = *tables.d_state;
        const std::int64_t listed = __ldcg(&state.listed);
        state.threshold[0] = within;
        state.complete = tables.items <= listed && listed <= tables.list_capacity ? 1 : 0;
      });
}

}  // namespace

void launch_exact_guess(const Pass& pass, cudaStream_t stream) {
  if (pass.tables.tiles == 0) return;
  const auto blocks =
      static_cast<unsigned>(std::min<std::int64_t>(pass.tables.tiles, Policy::kGuessBlocks));
  with_type(pass.step.dtype, [&](auto type) {
    exact_guess_kernel<decltype(type)><<<blocks, Policy::kGuessThreads, 0, stream>>>(pass);
  });
  core::cuda::check(cudaGetLastError(), "exact_guess");
}

void launch_exact_list(const Pass& pass, cudaStream_t stream) {
  const std::int64_t work = pass.tables.tiles + pass.tables.dense_tiles;
  if (work == 0) return;
  with_type(pass.step.dtype, [&](auto type) {
    exact_list_kernel<decltype(type)>
        <<<resident_blocks(work, Policy::kBlocksPerProcessor), kThreads, 0, stream>>>(pass);
  });
  core::cuda::check(cudaGetLastError(), "exact_list");
}

}  // namespace scalecom::kernels::cuda
