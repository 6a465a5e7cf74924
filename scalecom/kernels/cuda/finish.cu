#include "scalecom/kernels/cuda/entry.cuh"
#include "scalecom/kernels/cuda/grid.cuh"
#include "scalecom/kernels/cuda/policy.h"

namespace scalecom::kernels::cuda {
namespace {

using Policy = policy::Finish;

// What of a tile is needed here: its gradient, and `items` from `first_item` on, of which some may
// lie outside it.
struct Task {
  std::int64_t grad = 0;
  std::int64_t first_item = 0;
  std::uint32_t items = 0;
  std::uint32_t begin = 0;
  std::uint32_t elements = 0;
};

__device__ Task task_of(const Tables& tables, std::int64_t t) {
  if (t >= tables.tiles) return {};
  const Tile& tile = tables.d_tiles[t];
  Task task{tile.grad, tile.first_item, tile.items, tile.begin, tile.elements};
  if (tables.kind == layout::Selection::Kind::kExact) {
    task.first_item = tables.d_tile_items[t];
    task.items = static_cast<std::uint32_t>(tables.d_tile_items[t + 1] - task.first_item);
  }
  return task;
}

// One of a task's items; none where there are not as many.
struct Item {
  __device__ Item(const Pass& pass, const Task& task, std::uint32_t i) : there(i < task.items) {
    if (!there) return;
    position = pass.step.d_positions[task.first_item + i];
    sum = pass.step.d_message[task.first_item + i];
  }

  bool there;
  std::uint32_t position = 0;
  float sum = 0;
};

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

// A tile's gradient in shared memory, all 0 between tiles, at the distance from a vector's boundary
// at which it lies in device memory. It is written there once, and not first filled and then
// mended.
template <typename Type>
class Canvas {
 public:
  using Stored = typename Type::Stored;
  static constexpr int kPerVector = sizeof(uint4) / sizeof(Stored);

  __host__ __device__ static int vectors(int elements) { return elements / kPerVector + 2; }

  __device__ Canvas(uint4* shared, int most_elements) : vectors_(shared) {
    for (int v = static_cast<int>(threadIdx.x); v < vectors(most_elements); v += Policy::kThreads) {
      vectors_[v] = uint4{};
    }
    __syncthreads();
  }

  __device__ void begin(Stored* d_grad) {
    past_ =
        static_cast<int>(reinterpret_cast<std::uintptr_t>(d_grad) % sizeof(uint4) / sizeof(Stored));
    d_grad_ = d_grad;
  }
  __device__ void put(std::uint32_t i, Stored value) {
    reinterpret_cast<Stored*>(vectors_)[past_ + i] = value;
  }
  /// Writes `elements`. All threads of the block call it, and may put() into the next tile when it
  /// returns.
  __device__ void write(int elements) {
    __syncthreads();
    const int end = past_ + elements;
    auto* d_vectors = reinterpret_cast<uint4*>(d_grad_ - past_);
#pragma unroll 4
    for (int v = static_cast<int>(threadIdx.x); v * kPerVector < end; v += Policy::kThreads) {
      if (v * kPerVector >= past_ && (v + 1) * kPerVector <= end) {
        d_vectors[v] = vectors_[v];
      } else {
        write_ones(v * kPerVector, end);
      }
      vectors_[v] = uint4{};
    }
    __syncthreads();
  }

 private:
  // What of a vector belongs to the tile.
  __device__ void write_ones(int first, int end) {
    for (int i = max(first, past_); i < min(first + kPerVector, end); ++i) {
      d_grad_[i - past_] = reinterpret_cast<const Stored*>(vectors_)[i];
    }
  }

  uint4* vectors_;
  Stored* d_grad_ = nullptr;
  int past_ = 0;
};

// Puts an item where it belongs; returns whether it is finite.
template <typename Type>
__device__ bool put(const Item& item, const Task& task, float factor, Canvas<Type>& canvas) {
  const std::uint32_t in_tile = item.position - task.begin;
  if (!item.there || in_tile >= task.elements) return true;
  const float mean = __fmul_rn(item.sum, factor);
  canvas.put(in_tile, Type::store(mean));
  return is_finite(mean);
}

// Zero, and the items over it, in every tile of this block. The next tile's items, and where those
// of the one after it lie, are on their way while a tile is written. Returns whether all of this
// thread's items were finite.
template <typename Type>
__device__ bool scatter_tiles(const Pass& pass, float factor, Canvas<Type>& canvas) {
  bool finite = true;
  Task task = task_of(pass.tables, blockIdx.x);
  Task next = task_of(pass.tables, std::int64_t{blockIdx.x} + gridDim.x);
  Item item(pass, task, threadIdx.x);
  for (std::int64_t t = blockIdx.x; t < pass.tables.tiles; t += gridDim.x) {
    canvas.begin(gradient<Type>(pass, task.grad));
    finite &= put<Type>(item, task, factor, canvas);
    for (std::uint32_t i = threadIdx.x + Policy::kThreads; i < task.items; i += Policy::kThreads) {
      finite &= put<Type>(Item(pass, task, i), task, factor, canvas);
    }
    item = Item(pass, next, threadIdx.x);
    const Task after = task_of(pass.tables, t + 2 * std::int64_t{gridDim.x});
    canvas.write(static_cast<int>(task.elements));
    task = next;
    next = after;
  }
  return finite;
}

template <typename Type>
__device__ bool store_dense(const Pass& pass, const DenseTile& tile) {
  const float* d_sums = pass.step.d_message + pass.tables.items + tile.place;
  auto* d_grad = gradient<Type>(pass, tile.grad);
  bool finite = true;
  for (std::int64_t i = threadIdx.x; i < tile.elements; i += Policy::kThreads) {
    const float sum = d_sums[i];
    d_grad[i] = Type::store(sum);
    finite &= is_finite(sum);
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
  extern __shared__ uint4 shared[];
  const Tables& tables = pass.tables;
  Canvas<Type> canvas(shared, tables.tile_elements);
  bool finite = scatter_tiles<Type>(pass, factor, canvas);
  for (std::int64_t t = blockIdx.x; t < tables.dense_tiles; t += gridDim.x) {
    finite &= store_dense<Type>(pass, tables.d_dense_tiles[t]);
  }
  if (!finite) tables.d_state->refused = 1;
}

template <typename Type>
__global__ void __launch_bounds__(Policy::kThreads, Policy::kBlocksPerProcessor)
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
    put_back_kernel(const __grid_constant__ Pass pass, const std::int32_t* d_condition) {
  if (d_condition != nullptr && *d_condition == 0) return;
  if (*pass.step.d_sent != 0) {
    restore(pass, std::int64_t{blockIdx.x} * policy::Items::kThreads + threadIdx.x,
            std::int64_t{gridDim.x} * policy::Items::kThreads);
  }
  if (is_last_block(pass.tables.d_state) && threadIdx.x == 0) *pass.step.d_sent = 0;
}

}  // namespace

void launch_finish(const Pass& pass, float factor, cudaStream_t stream) {
  const std::int64_t work = std::max<std::int64_t>(1, pass.tables.tiles + pass.tables.dense_tiles);
  with_type(pass.step.dtype, [&](auto type) {
    using Type = decltype(type);
    const std::size_t shared =
        sizeof(uint4) * static_cast<std::size_t>(Canvas<Type>::vectors(pass.tables.tile_elements));
    finish_kernel<Type>
        <<<resident_blocks(work, Policy::kBlocksPerProcessor), Policy::kThreads, shared, stream>>>(
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

void launch_put_back(const Pass& pass, const std::int32_t* d_condition, cudaStream_t stream) {
  if (pass.tables.items == 0) return;
  put_back_kernel<<<blocks_for(pass.tables.items, policy::Items::kThreads), policy::Items::kThreads,
                    0, stream>>>(pass, d_condition);
  core::cuda::check(cudaGetLastError(), "put_back");
}

}  // namespace scalecom::kernels::cuda
