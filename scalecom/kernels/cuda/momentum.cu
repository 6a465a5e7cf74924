#include "scalecom/kernels/cuda/momentum.h"

#include <cub/block/block_reduce.cuh>

#include "scalecom/core/cuda/native.h"
#include "scalecom/kernels/cuda/grid.cuh"
#include "scalecom/kernels/cuda/number.cuh"
#include "scalecom/kernels/cuda/policy.h"

namespace scalecom::kernels::cuda {
namespace {

using Policy = policy::Elementwise;

using core::cuda::native;

// visit(i) for every i below `count`.
template <typename Visit>
__global__ void __launch_bounds__(Policy::kThreads) each_kernel(std::int64_t count, Visit visit) {
  const std::int64_t threads = std::int64_t{gridDim.x} * Policy::kThreads;
  for (std::int64_t i = std::int64_t{blockIdx.x} * Policy::kThreads + threadIdx.x; i < count;
       i += threads) {
    visit(i);
  }
}

template <typename Visit>
void launch_each(std::int64_t count, const char* name, const core::Stream& stream,
                 const Visit& visit) {
  if (count == 0) return;
  const core::cuda::DeviceScope scope(stream.device());
  const std::int64_t work = blocks_for(count, Policy::kThreads);
  each_kernel<<<resident_blocks(work, Policy::kBlocksPerProcessor), Policy::kThreads, 0,
                native(stream)>>>(count, visit);
  core::cuda::check(cudaGetLastError(), name);
}

// The velocity after a gradient, and what it moves by.
struct Motion {
  __device__ Motion(Momentum momentum, float velocity, float gradient) {
    if (momentum.nesterov) {
      this->velocity = __fmul_rn(momentum.factor, __fadd_rn(velocity, gradient));
      step = __fadd_rn(this->velocity, gradient);
    } else {
      this->velocity = __fadd_rn(__fmul_rn(momentum.factor, velocity), gradient);
      step = this->velocity;
    }
  }

  float velocity;
  float step;
};

template <typename Type>
struct Accumulate {
  __device__ void operator()(std::int64_t i) const {
    const Motion motion(momentum, d_velocity[i], __fmul_rn(Type::load(d_grad[i]), scale));
    const float after = __fadd_rn(d_memory[i], motion.step);
    if (!is_finite(after) || !is_finite(motion.velocity)) {
      *d_flag = 1.0F;
      return;
    }
    d_velocity[i] = motion.velocity;
    d_memory[i] = after;
  }

  const typename Type::Stored* d_grad;
  float* d_memory;
  float* d_velocity;
  Momentum momentum;
  float scale;
  float* d_flag;
};

struct Apply {
  __device__ void operator()(std::int64_t i) const {
    const Motion motion(momentum, d_velocity[i], d_numbers[i]);
    if (is_finite(motion.velocity) && is_finite(motion.step)) {
      d_velocity[i] = motion.velocity;
    } else {
      *d_flag = 1.0F;
    }
    d_numbers[i] = __fmul_rn(motion.step, factor);
  }

  float* d_numbers;
  float* d_velocity;
  Momentum momentum;
  float factor;
  float* d_flag;
};

template <typename Type>
__global__ void __launch_bounds__(Policy::kThreads)
    sum_of_squares_kernel(const typename Type::Stored* d_grad, std::int64_t count, double* d_sums) {
  using Reduce = cub::BlockReduce<double, Policy::kThreads>;
  __shared__ typename Reduce::TempStorage storage;
  const std::int64_t begin = std::int64_t{blockIdx.x} * kSummedTogether;
  const std::int64_t end = min(count, begin + kSummedTogether);
  double sum = 0;
  for (std::int64_t i = begin + threadIdx.x; i < end; i += Policy::kThreads) {
    const double value = Type::load(d_grad[i]);
    sum += value * value;
  }
  sum = Reduce(storage).Sum(sum);
  if (threadIdx.x == 0) d_sums[blockIdx.x] = sum;
}

struct Take {
  __device__ void operator()(std::int64_t i) const {
    const std::uint32_t position = items.d_positions[i];
    items.d_values[i] = d_memory[position];
    items.d_velocities[i] = d_velocity[position];
    d_memory[position] = 0.0F;
    d_velocity[position] = 0.0F;
  }

  float* d_memory;
  float* d_velocity;
  Masked items;
};

struct PutBack {
  __device__ void operator()(std::int64_t i) const {
    if (*d_condition == 0) return;
    const std::uint32_t position = items.d_positions[i];
    d_memory[position] = items.d_values[i];
    d_velocity[position] = items.d_velocities[i];
  }

  float* d_memory;
  float* d_velocity;
  Masked items;
  const std::int32_t* d_condition;
};

struct Restore {
  __device__ void operator()(std::int64_t i) const {
    if (*d_condition != 0) d_numbers[i] = d_before[i];
  }

  const std::int32_t* d_condition;
  const float* d_before;
  float* d_numbers;
};

}  // namespace

void accumulate_momentum(const void* d_grad, core::DType dtype, float* d_memory, float* d_velocity,
                         std::int64_t count, Momentum momentum, float scale, float* d_flag,
                         const core::Stream& stream) {
  with_type(dtype, [&](auto type) {
    using Type = decltype(type);
    launch_each(count, "accumulate_momentum", stream,
                Accumulate<Type>{static_cast<const typename Type::Stored*>(d_grad), d_memory,
                                 d_velocity, momentum, scale, d_flag});
  });
}

void apply_momentum(float* d_numbers, float* d_velocity, std::int64_t count, Momentum momentum,
                    float factor, float* d_flag, const core::Stream& stream) {
  launch_each(count, "apply_momentum", stream,
              Apply{d_numbers, d_velocity, momentum, factor, d_flag});
}

void sum_of_squares(const void* d_grad, core::DType dtype, std::int64_t count, double* d_sums,
                    const core::Stream& stream) {
  if (count == 0) return;
  const core::cuda::DeviceScope scope(stream.device());
  with_type(dtype, [&](auto type) {
    using Type = decltype(type);
    sum_of_squares_kernel<Type>
        <<<blocks_for(count, kSummedTogether), Policy::kThreads, 0, native(stream)>>>(
            static_cast<const typename Type::Stored*>(d_grad), count, d_sums);
  });
  core::cuda::check(cudaGetLastError(), "sum_of_squares");
}

void take_masked(float* d_memory, float* d_velocity, const Masked& items,
                 const core::Stream& stream) {
  launch_each(items.count, "take_masked", stream, Take{d_memory, d_velocity, items});
}

void put_masked_back(float* d_memory, float* d_velocity, const Masked& items,
                     const std::int32_t* d_condition, const core::Stream& stream) {
  launch_each(items.count, "put_masked_back", stream,
              PutBack{d_memory, d_velocity, items, d_condition});
}

void restore_if(const std::int32_t* d_condition, const float* d_before, std::int64_t count,
                float* d_numbers, const core::Stream& stream) {
  launch_each(count, "restore_if", stream, Restore{d_condition, d_before, d_numbers});
}

}  // namespace scalecom::kernels::cuda
