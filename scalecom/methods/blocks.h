#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>

#include "scalecom/core/buffer.h"
#include "scalecom/core/thread_pool.h"

namespace scalecom::methods {

/// Elements of one task of the pool: long enough to make its start cheap, short enough to divide a
/// small bucket and to keep a block's arrays in the second-level cache.
constexpr std::int64_t kBlockElements = 64 * 1024;

/// The address of element `index`.
inline std::byte* element(const core::Buffer& buffer, std::int64_t index) {
  return static_cast<std::byte*>(buffer.data) + index * core::size_of(buffer.dtype);
}

/// work(begin, end) over [0, elements) in blocks, on the pool.
inline void for_each_block(std::int64_t elements,
                           const std::function<void(std::int64_t, std::int64_t)>& work) {
  const std::int64_t blocks = (elements + kBlockElements - 1) / kBlockElements;
  core::parallel_for(blocks, [&](std::int64_t i) {
    work(i * kBlockElements, std::min(elements, (i + 1) * kBlockElements));
  });
}

}  // namespace scalecom::methods
