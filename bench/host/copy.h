#pragma once

#include <cstdint>

namespace bench::host {

/// With all threads of the pool.
void copy_bytes(void* to, const void* from, std::int64_t bytes);

}  // namespace bench::host
