#pragma once

#include "scalecom/kernels/elementwise.h"

/// kernels/elementwise.h on a CUDA stream.
namespace scalecom::kernels::cuda::elementwise {

using kernels::elementwise::Flag;
using kernels::elementwise::Numbers;

void load(const void* d_grad, core::DType dtype, std::int64_t count, float factor, float* d_out,
          const core::Stream& stream);
void check_finite(const float* d_numbers, std::int64_t count, Flag* d_flag,
                  const core::Stream& stream);
void store(const float* d_in, std::int64_t count, void* d_grad, core::DType dtype,
           const Flag* d_flag, const core::Stream& stream);
void narrow(const float* d_in, std::int64_t count, core::DType type, std::uint16_t* d_out,
            const core::Stream& stream);
void widen(const std::uint16_t* d_in, std::int64_t count, core::DType type, float* d_out,
           const core::Stream& stream);
void mean_of_narrow(const std::uint16_t* d_arrived, std::int64_t count, int ranks, core::DType type,
                    std::uint16_t* d_mean, float* d_rounding, const core::Stream& stream);
void add_quotient(float* d_to, const float* d_from, std::int64_t count, float divisor, float factor,
                  const core::Stream& stream);
void scale(float* d_numbers, std::int64_t count, float factor, const core::Stream& stream);
void scale_all(std::span<const Numbers> arrays, const float* d_factor, const core::Stream& stream);
void follow(const float* d_now, float* d_last, float* d_factor, Flag* d_fell,
            const core::Stream& stream);

}  // namespace scalecom::kernels::cuda::elementwise
