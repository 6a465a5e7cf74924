#pragma once

#include <cstdint>

namespace scalecom::testing {

/// What this process holds of the system now.
struct Holdings {
  std::int64_t resident_bytes = 0;
  int threads = 0;
  int files = 0;  ///< open ones
};

Holdings holdings();

/// Whether resident memory says what a program holds: a sanitizer keeps what was freed.
bool resident_memory_counts();

}  // namespace scalecom::testing
