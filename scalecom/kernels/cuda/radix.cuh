#pragma once

#include <cub/block/block_scan.cuh>

#include "scalecom/kernels/cuda/grid.cuh"
#include "scalecom/kernels/cuda/tables.h"

/// Finding the n-th largest of many keys by counting them, some bits at a time.
namespace scalecom::kernels::cuda {

/// Two counts as one number, so that one scan does for both.
__device__ inline std::uint64_t counts_of(std::uint32_t above, std::uint32_t equal) {
  return (std::uint64_t{equal} << 32) | above;
}
__device__ inline std::uint32_t above_count(std::uint64_t counts) {
  return static_cast<std::uint32_t>(counts);
}
__device__ inline std::uint32_t equal_count(std::uint64_t counts) {
  return static_cast<std::uint32_t>(counts >> 32);
}

/// The bin in which the `wanted`-th largest key lies, and how many of that bin are wanted. All
/// threads of the block call it with the same histogram, which all of them see, and get the answer;
/// it holds `wanted` keys or more.
template <int kBins, int kThreads>
__device__ Threshold find_bin(const std::uint32_t* histogram, std::uint32_t wanted) {
  using Scan = cub::BlockScan<std::uint32_t, kThreads>;
  __shared__ typename Scan::TempStorage storage;
  __shared__ Threshold found;
  constexpr int kPerThread = (kBins + kThreads - 1) / kThreads;
  // Threads look from the highest bin down; loads pass by the first-level cache, which may be old
  // where other blocks have counted.
  const int highest = kBins - 1 - static_cast<int>(threadIdx.x) * kPerThread;
  std::uint32_t counts[kPerThread];
#pragma unroll
  for (int i = 0; i < kPerThread; ++i) {
    const int bin = highest - i;
    counts[i] = bin < 0 ? 0 : *const_cast<const volatile std::uint32_t*>(histogram + bin);
  }
  std::uint32_t sum = 0;
#pragma unroll
  for (int i = 0; i < kPerThread; ++i) sum += counts[i];
  std::uint32_t above = 0;
  Scan(storage).ExclusiveSum(sum, above);
  if (above < wanted && wanted - above <= sum) {
#pragma unroll
    for (int i = 0; i < kPerThread; ++i) {
      if (above < wanted && wanted - above <= counts[i]) {
        found = {static_cast<std::uint32_t>(highest - i), wanted - above};
      }
      above += counts[i];
    }
  }
  __syncthreads();
  return found;
}

/// When all blocks have added to the histogram of all: in the last of them, calls found() in one
/// thread, with what find_bin() finds there, and clears it.
template <int kBins, int kThreads, typename Found>
__device__ void find_in_last_block(const Tables& tables, std::uint32_t wanted, Found found) {
  if (!is_last_block(tables.d_state)) return;
  const Threshold within = find_bin<kBins, kThreads>(tables.d_histogram, wanted);
  if (threadIdx.x == 0) found(within);
  __syncthreads();
  for (int i = static_cast<int>(threadIdx.x); i < kBins; i += kThreads) tables.d_histogram[i] = 0;
}

/// A block's share of that histogram, in shared memory.
template <int kBins, int kThreads>
class BlockHistogram {
 public:
  __device__ explicit BlockHistogram(std::uint32_t (&shared)[kBins]) : counts_(shared) {
    for (int i = static_cast<int>(threadIdx.x); i < kBins; i += kThreads) counts_[i] = 0;
    __syncthreads();
  }

  __device__ void add(std::uint32_t bin) { atomicAdd(&counts_[bin], 1U); }

  __device__ void merge(const Tables& tables) const {
    __syncthreads();
    for (int i = static_cast<int>(threadIdx.x); i < kBins; i += kThreads) {
      if (counts_[i] != 0) atomicAdd(&tables.d_histogram[i], counts_[i]);
    }
  }

 private:
  std::uint32_t (&counts_)[kBins];
};

}  // namespace scalecom::kernels::cuda
