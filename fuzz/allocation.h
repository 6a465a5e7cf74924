#pragma once

#include <cstddef>

namespace fuzz {

/// Watches what is allocated at any one time while it lives, and ends the process where that is
/// over `most`: a few bytes of a file must not make its reader take gigabytes. Under
/// AddressSanitizer only; elsewhere it does nothing.
class AllocationLimit {
 public:
  explicit AllocationLimit(std::size_t most);
  AllocationLimit(const AllocationLimit&) = delete;
  AllocationLimit& operator=(const AllocationLimit&) = delete;
  ~AllocationLimit();
};

}  // namespace fuzz
