#pragma once

#include <algorithm>
#include <cstdint>

#include "scalecom/core/thread_pool.h"

namespace bench::host {

/// pass(begin, end) over all elements, a block at a time, on the pool.
template <typename Pass>
void over_blocks(std::int64_t elements, const Pass& pass) {
  constexpr std::int64_t kBlock = 65536;  // elements of a thread's turn
  scalecom::core::parallel_for((elements + kBlock - 1) / kBlock, [&](std::int64_t block) {
    pass(block * kBlock, std::min(elements, (block + 1) * kBlock));
  });
}

}  // namespace bench::host
