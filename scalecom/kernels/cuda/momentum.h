#pragma once

#include <cstdint>

#include "scalecom/core/dtype.h"
#include "scalecom/core/stream.h"
#include "scalecom/kernels/momentum.h"

/// kernels/momentum.h on a CUDA stream, with the same bits. `d_flag` becomes 1 where something
/// would not be finite.
namespace scalecom::kernels::cuda {

void accumulate_momentum(const void* d_grad, core::DType dtype, float* d_memory, float* d_velocity,
                         std::int64_t count, Momentum momentum, float scale, float* d_flag,
                         const core::Stream& stream);

void apply_momentum(float* d_numbers, float* d_velocity, std::int64_t count, Momentum momentum,
                    float factor, float* d_flag, const core::Stream& stream);

/// The elements of which sum_of_squares() gives one sum.
constexpr std::int64_t kSummedTogether = 65'536;
void sum_of_squares(const void* d_grad, core::DType dtype, std::int64_t count, double* d_sums,
                    const core::Stream& stream);

/// Entries of a tensor that are sent: values and velocities of its positions.
struct Masked {
  const std::uint32_t* d_positions = nullptr;
  float* d_values = nullptr;
  float* d_velocities = nullptr;
  std::int64_t count = 0;
};

/// They leave memory and velocity, which are 0 there afterwards.
void take_masked(float* d_memory, float* d_velocity, const Masked& items,
                 const core::Stream& stream);
/// And come back, where the condition is not 0.
void put_masked_back(float* d_memory, float* d_velocity, const Masked& items,
                     const std::int32_t* d_condition, const core::Stream& stream);
/// `count` numbers as they were, where the condition is not 0.
void restore_if(const std::int32_t* d_condition, const float* d_before, std::int64_t count,
                float* d_numbers, const core::Stream& stream);

}  // namespace scalecom::kernels::cuda
