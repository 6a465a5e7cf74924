#include <cub/block/block_reduce.cuh>

#include "scalecom/kernels/cuda/grid.cuh"
#include "scalecom/kernels/cuda/policy.h"
#include "scalecom/kernels/cuda/radix.cuh"
#include "scalecom/kernels/cuda/tile.cuh"

// What an exact selection does with its candidates: those in the list where that is complete,
// otherwise all entries.
namespace scalecom::kernels::cuda {
namespace {

using Policy = policy::Exact;
constexpr int kTakeThreads = Policy::kTakeThreads;
constexpr int kWarp = 32;
constexpr unsigned kAllLanes = 0xffffffffU;
constexpr int kNextBins = 1 << Policy::kNextBits;
static_assert(Policy::kFirstBits + 2 * Policy::kNextBits == 31);

// Calls visit(key) for the keys of all candidates.
template <typename Type, typename Visit>
__device__ void visit_candidates(const Pass& pass, Visit visit) {
  const Tables& tables = pass.tables;
  if (tables.d_state->complete != 0) {
    const std::int64_t listed = tables.d_state->listed;
    const std::int64_t stride = std::int64_t{gridDim.x} * Policy::kThreads;
#pragma unroll 4
    for (std::int64_t i = std::int64_t{blockIdx.x} * Policy::kThreads + threadIdx.x; i < listed;
         i += stride) {
      visit(magnitude_bits(tables.list.d_u[i]));
    }
    return;
  }
  for (std::int64_t t = blockIdx.x; t < tables.tiles; t += gridDim.x) {
    const Tile tile = tables.d_tiles[t];
    const auto elements = static_cast<int>(tile.elements);
    visit_tile<Type, false, Policy::kThreads, Policy::kUnroll>(
        pass, tile, [&](int i, const auto& u) {
          constexpr int kWidth = sizeof(u) / sizeof(u[0]);
#pragma unroll
          for (int e = 0; e < kWidth; ++e) {
            if (i + e < elements) visit(magnitude_bits(u[e]));
          }
        });
  }
}

// Makes the threshold's next bits certain. kRound: 1 or 2.
template <typename Type, int kRound>
__global__ void __launch_bounds__(Policy::kThreads)
    exact_narrow_kernel(const __grid_constant__ Pass pass) {
  constexpr int kShift = (2 - kRound) * Policy::kNextBits;
  __shared__ std::uint32_t counts[kNextBins];
  const Tables& tables = pass.tables;
  const Threshold threshold = tables.d_state->threshold[kRound - 1];
  BlockHistogram<kNextBins, Policy::kThreads> histogram(counts);
  visit_candidates<Type>(pass, [&](std::uint32_t key) {
    if (key >> (kShift + Policy::kNextBits) != threshold.bits) return;
    histogram.add((key >> kShift) & (kNextBins - 1));
  });
  histogram.merge(tables);
  find_in_last_block<kNextBins, Policy::kThreads>(tables, threshold.wanted, [&](Threshold within) {
    tables.d_state->threshold[kRound] = {(threshold.bits << Policy::kNextBits) | within.bits,
                                         within.wanted};
  });
}

struct Candidate {
  std::uint32_t place = 0;
  float u = 0;
  float memory = 0;
};

// Those of a tile, by their places.
template <typename Type>
class TileCandidates {
 public:
  __device__ TileCandidates(const Pass& pass, std::int64_t t)
      : pass_(pass),
        tile_(pass.tables.d_tiles[t]),
        listed_(pass.tables.d_state->complete != 0),
        segment_(listed_ ? pass.tables.d_segments[t] : Segment{0, tile_.elements}) {}

  __device__ const Tile& tile() const { return tile_; }
  __device__ std::uint32_t size() const { return segment_.count; }
  __device__ float u(std::uint32_t i) const {
    if (listed_) return pass_.tables.list.d_u[segment_.first + std::int64_t{i}];
    return to_send(pass_, Type::load(gradient<Type>(pass_, tile_.grad)[i]), tile_.d_memory[i]);
  }
  __device__ Candidate operator[](std::uint32_t i) const {
    if (!listed_) return {i, u(i), tile_.d_memory[i]};
    const std::int64_t at = segment_.first + std::int64_t{i};
    return {pass_.tables.list.d_place[at], u(i), pass_.tables.list.d_memory[at]};
  }

 private:
  const Pass& pass_;
  Tile tile_;
  bool listed_;
  Segment segment_;
};

// How a key compares with the threshold, as a count.
__device__ std::uint64_t counted(std::uint32_t key, std::uint32_t threshold) {
  return counts_of(key > threshold ? 1 : 0, key == threshold ? 1 : 0);
}

__device__ std::uint64_t sum_of_lanes(std::uint64_t value) {
#pragma unroll
  for (int distance = kWarp / 2; distance > 0; distance /= 2) {
    value += __shfl_xor_sync(kAllLanes, value, distance);
  }
  return value;
}

// By the lanes of a warp.
template <typename Type>
__device__ std::uint64_t count_tile(const Pass& pass, std::int64_t t, std::uint32_t threshold) {
  const TileCandidates<Type> candidates(pass, t);
  std::uint64_t counts = 0;
#pragma unroll 4
  for (std::uint32_t i = threadIdx.x % kWarp; i < candidates.size(); i += kWarp) {
    counts += counted(magnitude_bits(candidates.u(i)), threshold);
  }
  return sum_of_lanes(counts);
}

// What the blocks before this one have counted, `own` being what it has itself, in its first
// thread. Waits for blocks that the device has started earlier.
__device__ std::uint64_t counts_before_block(const Tables& tables, std::uint64_t own) {
  using Reduce = cub::BlockReduce<std::uint64_t, kTakeThreads>;
  __shared__ typename Reduce::TempStorage storage;
  __shared__ std::uint64_t before;
  if (threadIdx.x == 0) {
    tables.d_block_counts[blockIdx.x].counts = own;
    __threadfence();
    *static_cast<volatile std::uint32_t*>(&tables.d_block_counts[blockIdx.x].known) = 1;
  }
  std::uint64_t counts = 0;
  for (unsigned b = threadIdx.x; b < blockIdx.x; b += kTakeThreads) {
    while (*static_cast<volatile std::uint32_t*>(&tables.d_block_counts[b].known) == 0) {
    }
    __threadfence();
    counts += __ldcg(&tables.d_block_counts[b].counts);
  }
  counts = Reduce(storage).Sum(counts);
  if (threadIdx.x == 0) before = counts;
  __syncthreads();
  return before;
}

__device__ void take_candidate(const Pass& pass, const Tile& tile, std::int64_t first_element,
                               const Candidate& candidate, std::uint32_t item) {
  const std::uint32_t position = tile.begin + candidate.place;
  const float sent = rounded_to(pass.step.values, candidate.u);
  pass.step.d_positions[item] = position;
  pass.tables.d_absolute[item] = static_cast<std::uint32_t>(first_element + position);
  pass.step.d_message[item] = sent;
  pass.step.d_before[item] = candidate.memory;
  tile.d_memory[candidate.place] = __fmaf_rn(-pass.step.filter.beta, sent, candidate.memory);
}

// Takes the entries of a tile above the threshold, and as many of those at it as are wanted, the
// first ones; `before` is what was counted before the tile. By the lanes of a warp.
template <typename Type>
__device__ void take_tile(const Pass& pass, std::int64_t t, Threshold threshold,
                          std::uint64_t before) {
  constexpr int kAtOnce = Policy::kTakeAtOnce;
  const Tables& tables = pass.tables;
  const TileCandidates<Type> candidates(pass, t);
  const Tile& tile = candidates.tile();
  const std::int64_t first_element = tables.d_parts[tile.part].first_element;
  const unsigned lane = threadIdx.x % kWarp;
  const unsigned lower_lanes = (1U << lane) - 1;
  // Items, as they come before a count of entries.
  const auto items_in = [&](std::uint64_t counts) {
    return above_count(counts) + min(equal_count(counts), threshold.wanted);
  };
  if (lane == 0) {
    tables.d_tile_items[t] = items_in(before);
    if (tile.begin == 0) tables.d_first_items[tile.part] = items_in(before);
  }
  for (std::uint32_t base = 0; base < candidates.size(); base += kAtOnce * kWarp) {
    Candidate candidate[kAtOnce];
    std::uint64_t own[kAtOnce];
#pragma unroll
    for (int k = 0; k < kAtOnce; ++k) {
      const std::uint32_t i = base + k * kWarp + lane;
      own[k] = 0;
      if (i >= candidates.size()) continue;
      candidate[k] = candidates[i];
      own[k] = counted(magnitude_bits(candidate[k].u), threshold.bits);
    }
#pragma unroll
    for (int k = 0; k < kAtOnce; ++k) {
      const unsigned above = __ballot_sync(kAllLanes, above_count(own[k]) != 0);
      const unsigned equal = __ballot_sync(kAllLanes, equal_count(own[k]) != 0);
      const std::uint64_t from =
          before + counts_of(__popc(above & lower_lanes), __popc(equal & lower_lanes));
      const std::uint32_t item = items_in(from);
      if (items_in(from + own[k]) > item) {
        take_candidate(pass, tile, first_element, candidate[k], item);
      }
      before += counts_of(__popc(above), __popc(equal));
    }
  }
}

// A warp a tile; a block has neighbouring ones.
template <typename Type>
__global__ void __launch_bounds__(kTakeThreads, Policy::kTakeBlocksPerProcessor)
    exact_take_kernel(const __grid_constant__ Pass pass) {
  constexpr int kWarps = kTakeThreads / kWarp;
  __shared__ std::uint64_t shared[kWarps];
  const Tables& tables = pass.tables;
  const Threshold threshold = tables.d_state->threshold[2];
  const auto warp = static_cast<int>(threadIdx.x) / kWarp;
  const std::int64_t first = tables.tiles * blockIdx.x / gridDim.x;
  const std::int64_t last = tables.tiles * (blockIdx.x + 1) / gridDim.x;
  // The sum over the warps' values, and over those of the warps before this one.
  const auto sum_warps = [&](std::uint64_t own, std::uint64_t* before) {
    __syncthreads();
    if (threadIdx.x % kWarp == 0) shared[warp] = own;
    __syncthreads();
    std::uint64_t sum = 0;
    for (int w = 0; w < kWarps; ++w) {
      if (w == warp) *before = sum;
      sum += shared[w];
    }
    return sum;
  };

  std::uint64_t own = 0;
  for (std::int64_t t = first + warp; t < last; t += kWarps) {
    const std::uint64_t counts = count_tile<Type>(pass, t, threshold.bits);
    if (threadIdx.x % kWarp == 0) tables.d_tile_counts[t] = counts;
    own += counts;
  }
  std::uint64_t before_warp = 0;
  std::uint64_t before = counts_before_block(tables, sum_warps(own, &before_warp));
  for (std::int64_t base = first; base < last; base += kWarps) {
    const std::int64_t t = base + warp;
    const std::uint64_t in_warps = sum_warps(t < last ? tables.d_tile_counts[t] : 0, &before_warp);
    if (t < last) take_tile<Type>(pass, t, threshold, before + before_warp);
    before += in_warps;
  }
}

}  // namespace

void launch_exact_narrow(const Pass& pass, cudaStream_t stream) {
  if (pass.tables.tiles == 0) return;
  const unsigned blocks = resident_blocks(pass.tables.tiles, Policy::kNarrowBlocksPerProcessor);
  with_type(pass.step.dtype, [&](auto type) {
    using Type = decltype(type);
    exact_narrow_kernel<Type, 1><<<blocks, Policy::kThreads, 0, stream>>>(pass);
    exact_narrow_kernel<Type, 2><<<blocks, Policy::kThreads, 0, stream>>>(pass);
  });
  core::cuda::check(cudaGetLastError(), "exact_narrow");
}

void launch_exact_take(const Pass& pass, cudaStream_t stream) {
  if (pass.tables.tiles == 0) return;
  const unsigned blocks = std::min<unsigned>(
      resident_blocks(pass.tables.tiles, Policy::kTakeBlocksPerProcessor), Policy::kMostTakeBlocks);
  with_type(pass.step.dtype, [&](auto type) {
    exact_take_kernel<decltype(type)><<<blocks, kTakeThreads, 0, stream>>>(pass);
  });
  core::cuda::check(cudaGetLastError(), "exact_take");
}

}  // namespace scalecom::kernels::cuda
