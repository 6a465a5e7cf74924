#pragma once

#include <cstdint>
#include <span>

#include "scalecom/core/dtype.h"
#include "scalecom/core/stream.h"

/// The plain passes over whole arrays that means are made of, on any device: arrays lie on the
/// stream's device. On the CPU the pool's threads share a pass, which is done when the call
/// returns; on a GPU it takes its place in the stream. Both give the same bits.
namespace scalecom::kernels::elementwise {

/// A number on the stream's device: 0, or 1 once something was not finite.
using Flag = std::int32_t;

/// `count` gradient elements to fp32, times `factor`. An fp32 gradient may be its own `out`.
void load(const void* grad, core::DType dtype, std::int64_t count, float factor, float* out,
          const core::Stream& stream);

/// Sets the flag where a number is not finite.
void check_finite(const float* numbers, std::int64_t count, Flag* flag, const core::Stream& stream);

/// fp32 rounded to the gradient's type, overflowing to infinity; all NaN where the flag is set. An
/// fp32 gradient may be its own `in`.
void store(const float* in, std::int64_t count, void* grad, core::DType dtype, const Flag* flag,
           const core::Stream& stream);

/// fp32 to the 16-bit patterns of round_to(type, .), and back.
void narrow(const float* in, std::int64_t count, core::DType type, std::uint16_t* out,
            const core::Stream& stream);
void widen(const std::uint16_t* in, std::int64_t count, core::DType type, float* out,
           const core::Stream& stream);

/// `ranks` arrays of `count` 16-bit values, one after the other, are summed in fp32 in their order:
/// `mean` is round_to(type, sum * (1 / ranks)), and `rounding` what that leaves: fma(-ranks, mean,
/// sum).
void mean_of_narrow(const std::uint16_t* arrived, std::int64_t count, int ranks, core::DType type,
                    std::uint16_t* mean, float* rounding, const core::Stream& stream);

/// to[i] += from[i] / divisor * factor, each operation rounded.
void add_quotient(float* to, const float* from, std::int64_t count, float divisor, float factor,
                  const core::Stream& stream);

/// Every number times `factor`.
void scale(float* numbers, std::int64_t count, float factor, const core::Stream& stream);

/// All numbers of these arrays times *factor, which lies on the stream's device.
struct Numbers {
  float* data = nullptr;
  std::int64_t count = 0;
};
void scale_all(std::span<const Numbers> arrays, const float* factor, const core::Stream& stream);

/// How a number has changed since the last look: *factor = *now / *last, and *fell whether it is
/// smaller; 1 and 0 at the first look, where *last is 0. Then *last is *now. All lie on the
/// stream's device.
void follow(const float* now, float* last, float* factor, Flag* fell, const core::Stream& stream);

}  // namespace scalecom::kernels::elementwise
