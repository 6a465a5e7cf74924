#pragma once

#include <cstdint>

namespace bench {

/// Bytes of this process that are in memory now.
std::int64_t resident_bytes();

/// The most there have been since the last reset_peak().
std::int64_t peak_resident_bytes();
void reset_peak();

}  // namespace bench
