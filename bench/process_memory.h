#pragma once

#include <cstdint>

namespace bench {

/// Bytes of this process that are in memory now.
std::int64_t resident_bytes();

/// The most there have been since the last reset_peak().
std::int64_t peak_resident_bytes();
void reset_peak();

/// The same, once what was freed is given back to the system: the peak that follows has nothing in
/// it of what was done before.
void trim_and_reset_peak();

}  // namespace bench
