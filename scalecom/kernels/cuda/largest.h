#pragma once

#include <cstdint>

#include "scalecom/core/stream.h"

/// What kernels/largest.h does in host memory, in pieces between which the host looks: its keys are
/// those of magnitude_key().
namespace scalecom::kernels::cuda {

/// Numbers that one count of count_from() is of.
constexpr std::int64_t kCountedTogether = 4096;

/// Every `stride`-th number from `first` on, `count` of them.
void gather_strided(const float* d_numbers, std::int64_t first, std::int64_t stride,
                    std::int64_t count, float* d_out, const core::Stream& stream);

/// The numbers at `count` positions.
void gather(const float* d_numbers, const std::uint32_t* d_positions, std::int64_t count,
            float* d_out, const core::Stream& stream);

/// How many keys are `least` or more, of every kCountedTogether numbers.
void count_from(const float* d_numbers, std::int64_t length, std::int32_t least,
                std::uint32_t* d_counts, const core::Stream& stream);

/// Their positions, ascending; d_starts[i] is where those of the i-th count begin.
void write_positions_from(const float* d_numbers, std::int64_t length, std::int32_t least,
                          const std::uint32_t* d_starts, std::uint32_t* d_positions,
                          const core::Stream& stream);

}  // namespace scalecom::kernels::cuda
