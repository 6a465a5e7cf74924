#pragma once

#include <cstddef>
#include <cstdint>

#include "scalecom/core/dtype.h"
#include "scalecom/core/stream.h"
#include "scalecom/kernels/elementwise.h"

/// What ranks that choose for themselves have sent, added up on a GPU: kernels/scatter.h there,
/// with the same bits. Every call puts its kernels on the stream and returns.
namespace scalecom::kernels::cuda {

/// Where the entries of one tensor lie in a message of wire/items.h.
struct GatheredPart {
  std::int64_t offset = 0;      ///< of its first element in the bucket
  std::int64_t length = 0;      ///< of the tensor
  std::int64_t first_item = 0;  ///< among the values, with which the message begins
  std::int64_t items = 0;
  std::int64_t first_byte = 0;  ///< of its offsets, in the message
};

/// The entries of one rank's message, of which `d_parts` are the parts in the order of their items:
/// d_sums[place in the bucket] += value * factor. Sets the flag where a sum is not finite, or the
/// message cannot have been packed. Ranks follow one another on the stream.
void add_gathered(const GatheredPart* d_parts, std::int64_t parts, std::int64_t items,
                  const std::byte* d_message, float factor, float* d_sums,
                  elementwise::Flag* d_flag, const core::Stream& stream);

/// Sets the flag where `d_number` is not 0.
void flag_unless_zero(const float* d_number, elementwise::Flag* d_flag, const core::Stream& stream);

/// `count` fp32 numbers become NaN where the flag is set; else nothing is touched.
void fill_nan_if(const elementwise::Flag* d_flag, float* d_numbers, std::int64_t count,
                 const core::Stream& stream);

/// d_sent becomes 0 where the flag is set and 1 where it is not; d_refused the opposite.
void decide_sent(const elementwise::Flag* d_flag, std::int32_t* d_sent, std::int32_t* d_refused,
                 const core::Stream& stream);

}  // namespace scalecom::kernels::cuda
