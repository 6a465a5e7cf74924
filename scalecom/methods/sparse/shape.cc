#include "scalecom/methods/sparse/shape.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "scalecom/core/error.h"
#include "scalecom/core/text.h"

namespace scalecom::methods::sparse {

std::int64_t Shape::Part::keep(double at_most_rate) const {
  const double wanted = std::floor(static_cast<double>(length) / std::min(rate, at_most_rate));
  return std::max<std::int64_t>(1, static_cast<std::int64_t>(wanted));
}

Shape::Shape(const layout::Layout& layout) {
  constexpr std::int64_t kMostElements = std::numeric_limits<std::uint32_t>::max();
  for (const layout::Slice& slice : layout.slices()) {
    if (slice.length == 0) continue;
    if (slice.dense()) {
      dense_parts.push_back({slice.name, slice.offset, slice.length, dense_elements});
      dense_elements += slice.length;
      continue;
    }
    if (slice.length > kMostElements) {
      throw core::UsageError(core::concat("[layout] tensor '", slice.name, "' has ", slice.length,
                                          " elements; a compressed one has at most ",
                                          kMostElements));
    }
    parts.push_back({slice.name, slice.offset, slice.length, slice.rate});
  }
}

}  // namespace scalecom::methods::sparse
