#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "scalecom/layout/layout.h"

namespace scalecom::methods::sparse {

/// Where the compressed and the dense slices of a bucket lie, and how many entries of each are
/// wanted. It follows from the layout alone, and is the same on every rank.
struct Shape {
  struct Part {
    std::string name;
    std::int64_t offset = 0;  ///< of its first element in the bucket
    std::int64_t length = 0;  ///< over 0
    double rate = 1;

    /// max(1, floor(length / rate)), for a rate no larger than its own.
    std::int64_t keep(double at_most_rate) const;
    std::int64_t keep() const { return keep(rate); }
  };
  struct DensePart {
    std::string name;
    std::int64_t offset = 0;
    std::int64_t length = 0;
    std::int64_t place = 0;  ///< among all dense elements
  };

  /// UsageError for a compressed tensor of more than 2^32 - 1 elements.
  explicit Shape(const layout::Layout& layout);

  std::vector<Part> parts;
  std::vector<DensePart> dense_parts;
  std::int64_t dense_elements = 0;
};

}  // namespace scalecom::methods::sparse
