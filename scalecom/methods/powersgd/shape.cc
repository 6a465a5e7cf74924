#include "scalecom/methods/powersgd/shape.h"

namespace scalecom::methods::powersgd {
namespace {

// Numbers beyond 2^31 of either make a matrix of more elements than any memory holds.
bool pays(double rows, double columns, double rank) {
  return rank > 0 && (rows + columns) * rank * 2 < rows * columns;
}

}  // namespace

Shape::Shape(const layout::Layout& layout, std::int64_t rank) {
  for (const layout::Slice& slice : layout.slices()) {
    // A part of a tensor is no matrix.
    const std::int64_t rows = slice.shape.empty() || !slice.whole() ? 1 : slice.shape.front();
    const std::int64_t columns = rows > 0 ? slice.length / rows : 0;
    if (pays(static_cast<double>(rows), static_cast<double>(columns), static_cast<double>(rank))) {
      matrices.push_back({slice.name, slice.offset, rows, columns, p_elements, q_elements});
      p_elements += rows * rank;
      q_elements += columns * rank;
    } else {
      dense_parts.push_back({slice.name, slice.offset, slice.length, dense_elements});
      dense_elements += slice.length;
    }
  }
}

}  // namespace scalecom::methods::powersgd
