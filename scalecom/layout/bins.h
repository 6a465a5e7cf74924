#pragma once

#include <cstdint>

namespace scalecom::layout {

/// A tensor of `length` elements in bins of `bin`; the last may be shorter.
struct Bins {
  std::int64_t length = 0;
  std::int64_t bin = 1;

  constexpr std::int64_t count() const { return (length + bin - 1) / bin; }
};

}  // namespace scalecom::layout
