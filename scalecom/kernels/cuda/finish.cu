#include "scalecom/kernels/cuda/entry.cuh"
#include "scalecom/kernels/cuda/grid.cuh"
#include "scalecom/kernels/cuda/policy.h"

namespace scalecom::kernels::cuda {
namespace {

using Policy = policy::Finish;

// The items of a tile: `count` from `first` on, of which some may lie outside it.
struct ItemRange {
  std::int64_t first = 0;
  std::int64_t count = 0;
};

// The first of the items [first, last) at `position` or after it.
__device__ std::int64_t lower_bound(const std::uint32_t* d_positions, std::int64_t first,
                                    std::int64_t last, std::int64_t position) {
  while (first < last) {
    const std::int64_t middle = first + (last - first) / 2;
    if (d_positions[middle] < position) {
      first = middle + 1;
    } else {
      last = middle;
    }
  }
  return first;
}

__device__ ItemRange items_of(const Pass& pass, const Tile& tile) {
  if (pass.tables.kind != layout::Selection::Kind::kExact) return {tile.first_item, tile.items};
  const std::int64_t* d_first_items = pass.tables.d_first_items + tile.part;
  const std::uint32_t* d_positions = pass.step.d_positions;
  const std::int64_t end = std::int64_t{tile.begin} + tile.elements;
  const std::int64_t first =
      lower_bound(d_positions, d_first_items[0], d_first_items[1], tile.begin);
  return {first, lower_bound(d_positions, first, d_first_items[1], end) - first};
}

// Fills gradient elements with copies of a pattern, in vectors but for the ends.
template <typename Type>
__device__ void fill(typename Type::Stored* d_grad, std::int64_t elements, std::uint32_t pattern) {
  using Stored = typename Type::Stored;
  constexpr int kPerVector = sizeof(uint4) / sizeof(Stored);
  const auto past = reinterpret_cast<std::uintptr_t>(d_grad) % sizeof(uint4) / sizeof(Stored);
  const std::int64_t head =
      min(elements, static_cast<std::int64_t>((kPerVector - past) % kPerVector));
  const std::int64_t vectors = (elements - head) / kPerVector;
  const std::int64_t tail = head + vectors * kPerVector;
  auto* d_vectors = reinterpret_cast<uint4*>(d_grad + head);
  const uint4 vector = make_uint4(pattern, pattern, pattern, pattern);
  for (std::int64_t i = threadIdx.x; i < vectors; i += Policy::kThreads) d_vectors[i] = vector;
  Stored one;
  memcpy(&one, &pattern, sizeof(Stored));
  if (threadIdx.x < head) d_grad[threadIdx.x] = one;
  if (threadIdx.x < elements - tail) d_grad[tail + threadIdx.x] = one;
}

// Puts a sum into the gradient; returns whether it is finite.
template <typename Type>
__device__ bool put(typename Type::Stored* d_grad, std::int64_t at, float sum, float factor) {
  const float mean = __fmul_rn(sum, factor);
  d_grad[at] = Type::store(mean);
  return is_finite(mean);
}

// Zero, and the items over it. Returns whether all of this thread's were finite.
template <typename Type>
__device__ bool scatter_tile(const Pass& pass, const Tile& tile, float factor) {
  const ItemRange items = items_of(pass, tile);
  const std::uint32_t* d_positions = pass.step.d_positions + items.first;
  const float* d_sums = pass.step.d_message + items.first;
  auto* d_grad = gradient<Type>(pass, tile.grad);
  // Under way while the tile is filled.
  std::int64_t i = threadIdx.x;
  std::uint32_t position = i < items.count ? d_positions[i] : 0;
  float sum = i < items.count ? d_sums[i] : 0.0F;
  fill<Type>(d_grad, tile.elements, 0);
  __syncthreads();
  bool finite = true;
  while (i < items.count) {
    const std::uint32_t in_tile = position - tile.begin;
    if (in_tile < tile.elements) finite &= put<Type>(d_grad, in_tile, sum, factor);
    i += Policy::kThreads;
    if (i >= items.count) break;
    position = d_positions[i];
    sum = d_sums[i];
  }
  return finite;
}

template <typename Type>
__device__ bool store_dense(const Pass& pass, const DenseTile& tile) {
  const float* d_sums = pass.step.d_message + pass.tables.items + tile.place;
  auto* d_grad = gradient<Type>(pass, tile.grad);
  bool finite = true;
  for (std::int64_t i = threadIdx.x; i < tile.elements; i += Policy::kThreads) {
    finite &= put<Type>(d_grad, i, d_sums[i], 1.0F);
  }
  return finite;
}

// The memories of items first, first + stride, ... as they were before they were taken.
__device__ void restore(const Pass& pass, std::int64_t first, std::int64_t stride) {
  for (std::int64_t i = first; i < pass.tables.items; i += stride) {
    const Part& part = pass.tables.d_parts[part_of_item(pass.tables, i)].part;
    part.d_memory[pass.step.d_positions[i]] = pass.step.d_before[i];
  }
}

// Block `block` of `blocks` does its part of refusing the step: NaN everywhere, memories restored.
template <typename Type>
__device__ void refuse(const Pass& pass, unsigned block, unsigned blocks) {
  const Tables& tables = pass.tables;
  for (std::int64_t t = block; t < tables.tiles; t += blocks) {
    const Tile& tile = tables.d_tiles[t];
    fill<Type>(gradient<Type>(pass, tile.grad), tile.elements, Type::kNanPattern);
  }
  for (std::int64_t t = block; t < tables.dense_tiles; t += blocks) {
    const DenseTile& tile = tables.d_dense_tiles[t];
    fill<Type>(gradient<Type>(pass, tile.grad), tile.elements, Type::kNanPattern);
  }
  // Nothing of an exact selection was taken where its offsets were damaged, nor do they tell to
  // which part they belong.
  if (tables.kind == layout::Selection::Kind::kExact && tables.d_state->damaged != 0) return;
  restore(pass, std::int64_t{block} * Policy::kThreads + threadIdx.x,
          std::int64_t{blocks} * Policy::kThreads);
}

template <typename Type>
__device__ void scatter(const Pass& pass, float factor) {
  const Tables& tables = pass.tables;
  bool finite = true;
  for (std::int64_t t = blockIdx.x; t < tables.tiles + tables.dense_tiles; t += gridDim.x) {
    finite &= t < tables.tiles ? scatter_tile<Type>(pass, tables.d_tiles[t], factor)
                               : store_dense<Type>(pass, tables.d_dense_tiles[t - tables.tiles]);
  }
  if (!finite) tables.d_state->refused = 1;
}

template <typename Type>
__global__ void __launch_bounds__(Policy::kThreads)
    finish_kernel(const __grid_constant__ Pass pass, float factor) {
  State* d_state = pass.tables.d_state;
  const bool flagged = flag(pass) != 0.0F;
  if (flagged) {
    refuse<Type>(pass, blockIdx.x, gridDim.x);
  } else {
    scatter<Type>(pass, factor);
  }
  if (!is_last_block(d_state)) return;
  // A sum that is not finite, although every rank's numbers were, is found only now. It is rare
  // enough for one block to do all over again.
  const bool refused = *static_cast<volatile std::uint32_t*>(&d_state->refused) != 0;
  if (refused && !flagged) refuse<Type>(pass, 0, 1);
  __syncthreads();
  if (threadIdx.x != 0) return;
  d_state->refused = 0;
  *pass.step.d_sent = flagged || refused ? 0 : 1;
  ++*pass.step.d_step;
}

__global__ void __launch_bounds__(policy::Items::kThreads)
    settle_rounding_kernel(const __grid_constant__ Pass pass, std::int64_t first,
                           std::int64_t count, const float* d_rounding) {
  const std::int64_t i =
      std::int64_t{blockIdx.x} * policy::Items::kThreads + static_cast<std::int64_t>(threadIdx.x);
  if (i >= count || *pass.step.d_sent == 0) return;
  const Part& part = pass.tables.d_parts[part_of_item(pass.tables, first + i)].part;
  float* d_memory = part.d_memory + pass.step.d_positions[first + i];
  *d_memory = __fmaf_rn(pass.step.filter.beta, d_rounding[i], *d_memory);
}

__global__ void __launch_bounds__(policy::Items::kThreads)
    put_back_kernel(const __grid_constant__ Pass pass) {
  if (*pass.step.d_sent == 0) return;
  restore(pass, std::int64_t{blockIdx.x} * policy::Items::kThreads + threadIdx.x,
          std::int64_t{gridDim.x} * policy::Items::kThreads);
}

}  // namespace

void launch_finish(const Pass& pass, float factor, cudaStream_t stream) {
  const std::int64_t work = std::max<std::int64_t>(1, pass.tables.tiles + pass.tables.dense_tiles);
  with_type(pass.step.dtype, [&](auto type) {
    finish_kernel<decltype(type)>
        <<<resident_blocks(work, Policy::kBlocksPerProcessor), Policy::kThreads, 0, stream>>>(
            pass, factor);
  });
  core::cuda::check(cudaGetLastError(), "finish");
}

void launch_settle_rounding(const Pass& pass, std::int64_t first, std::int64_t count,
                            const float* d_rounding, cudaStream_t stream) {
  if (count == 0) return;
  settle_rounding_kernel<<<blocks_for(count, policy::Items::kThreads), policy::Items::kThreads, 0,
                           stream>>>(pass, first, count, d_rounding);
  core::cuda::check(cudaGetLastError(), "settle_rounding");
}

void launch_put_back(const Pass& pass, cudaStream_t stream) {
  if (pass.tables.items == 0) return;
  put_back_kernel<<<blocks_for(pass.tables.items, policy::Items::kThreads), policy::Items::kThreads,
                    0, stream>>>(pass);
  core::cuda::check(cudaGetLastError(), "put_back");
}

}  // namespace scalecom::kernels::cuda
