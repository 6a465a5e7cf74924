#pragma once

#include <cub/block/block_scan.cuh>

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
  std::uint32_t sum = 0;
  for (int b = highest; b > highest - kPerThread && b >= 0; --b) {
    sum += *const_cast<const volatile std::uint32_t*>(histogram + b);
  }
  std::uint32_t above = 0;
  Scan(storage).ExclusiveSum(sum, above);
  if (above < wanted && wanted - above <= sum) {
    int bin = highest;
    for (;; --bin) {
      const std::uint32_t here = *const_cast<const volatile std::uint32_t*>(histogram + bin);
      if (wanted - above <= here) break;
      above += here;
    }
    found = {static_cast<std::uint32_t>(bin), wanted - above};
  }
  __syncthreads();
  return found;
}

}  // namespace scalecom::kernels::cuda
