#include "scalecom/methods/powersgd/shape.h"

namespace scalecom::methods::powersgd {
namespace {

// Numbers beyond 2^31 of either make a matrix of more elements than any memory holds.
bool pays(double rows, double columns, double rank) {
  return rank > 0 && (rows + columns) * rank * 2 < rows * columns;
}

std::int64_t sides(const layout::Slice& slice, std::int64_t rows) {
  return rows + slice.length / rows;
}

/// One row where there is no matrix in it: a row of numbers, nothing, or a part of a tensor.
std::int64_t rows_of(const layout::Slice& slice) {
  if (slice.shape.size() < 2 || slice.length == 0 || !slice.whole()) return 1;
  const std::int64_t first = slice.shape.front();
  std::int64_t best = first;
  std::int64_t rows = first;
  for (std::size_t i = 1; i + 1 < slice.shape.size(); ++i) {
    rows *= slice.shape[i];
    if (sides(slice, rows) < sides(slice, best)) best = rows;
  }
  return 2 * sides(slice, best) < sides(slice, first) ? best : first;
}

}  // namespace

Shape::Shape(const layout::Layout& layout, std::int64_t rank) {
  for (const layout::Slice& slice : layout.slices()) {
    const std::int64_t rows = rows_of(slice);
    const std::int64_t columns = slice.length / rows;
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
