#include "bench/host/copy.h"

#include <cstring>

#include "bench/host/blocks.h"

namespace bench::host {

void copy_bytes(void* to, const void* from, std::int64_t bytes) {
  over_blocks(bytes / 4 + 1, [=](std::int64_t begin, std::int64_t end) {
    const std::int64_t last = std::min(bytes, 4 * end);
    std::memcpy(static_cast<std::byte*>(to) + 4 * begin,
                static_cast<const std::byte*>(from) + 4 * begin,
                static_cast<std::size_t>(last - 4 * begin));
  });
}

}  // namespace bench::host
