#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "scalecom/core/stream.h"

/// What ranks that share a GPU do with each other's arrays. `d_` marks device pointers; every call
/// puts its kernels on the stream and returns.
namespace scalecom::kernels::cuda {

struct Copy {
  const std::byte* d_from;
  std::byte* d_to;
  std::int64_t bytes;
};

/// All of `copies`, in one launch up to 128 of them: what is short costs a launch, not its bytes.
/// Nothing overlaps; there are no demands on alignment.
void copy_all(std::span<const Copy> copies, const core::Stream& stream);

/// comm::sum_in_order() with the same bits, on a CUDA stream, for 2 to kMostParts parts.
constexpr int kMostParts = 1024;
void sum_in_order(std::span<const float* const> d_parts, float* d_out, std::int64_t count,
                  const core::Stream& stream);

}  // namespace scalecom::kernels::cuda
