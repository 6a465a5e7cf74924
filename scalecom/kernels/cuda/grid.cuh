#pragma once

#include <algorithm>
#include <cstdint>

#include "scalecom/core/cuda/check.h"
#include "scalecom/kernels/cuda/tables.h"

/// How work is divided among blocks, and how the last of them finds out that it is.
namespace scalecom::kernels::cuda {

inline unsigned blocks_for(std::int64_t work, std::int64_t per_block) {
  return static_cast<unsigned>((work + per_block - 1) / per_block);
}

/// Blocks that stay on the device for all of a launch: at most `per_processor` on each.
inline unsigned resident_blocks(std::int64_t work, int per_processor) {
  int device = 0;
  int processors = 1;
  core::cuda::check(cudaGetDevice(&device), "cudaGetDevice");
  core::cuda::check(cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, device),
                    "cudaDeviceGetAttribute");
  return static_cast<unsigned>(
      std::min<std::int64_t>(work, static_cast<std::int64_t>(processors) * per_processor));
}

/// Called by all threads of every block, once: true in the block that comes last. It sees all that
/// the others wrote.
__device__ inline bool is_last_block(State* d_state) {
  __shared__ bool last;
  __syncthreads();
  if (threadIdx.x == 0) {
    __threadfence();
    last = atomicAdd(&d_state->blocks_done, 1U) == gridDim.x - 1;
    if (last) d_state->blocks_done = 0;
    __threadfence();
  }
  __syncthreads();
  return last;
}

/// The last of `count` ascending numbers that is at most `value`; the first is.
template <typename T, typename At>
__device__ int last_not_above(int count, T value, At at) {
  int low = 0;
  int high = count;
  while (high - low > 1) {
    const int middle = low + (high - low) / 2;
    if (at(middle) <= value) {
      low = middle;
    } else {
      high = middle;
    }
  }
  return low;
}

__device__ inline int part_of_item(const Tables& tables, std::int64_t item) {
  return last_not_above(tables.parts, item, [&](int p) { return tables.d_first_items[p]; });
}

__device__ inline int part_of_long_chunk(const Tables& tables, std::int64_t chunk) {
  return last_not_above(tables.parts, chunk, [&](int p) { return tables.d_parts[p].first_long; });
}

}  // namespace scalecom::kernels::cuda
