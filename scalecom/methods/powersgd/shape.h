#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "scalecom/layout/layout.h"

namespace scalecom::methods::powersgd {

/// Which slices of a bucket are sent as two thin factors, where those lie, and which travel dense.
/// It follows from the layout and the rank alone: the same on every rank, and all that the wire
/// cost depends on.
struct Shape {
  /// A tensor as a matrix: its first dimension is the rows and the others are the columns, which
  /// for a convolution's weights (out, in, k, k) is how the authors see them. Where another
  /// division of its dimensions, in their order, has less than half as many rows and columns
  /// together, it is the one with the fewest: (k * k * in, out) for weights that lie as (k, k, in,
  /// out).
  struct Matrix {
    std::string name;
    std::int64_t offset = 0;  ///< of its first element in the bucket
    std::int64_t rows = 0;
    std::int64_t columns = 0;
    std::int64_t p_place = 0;  ///< of its factors among those of all matrices
    std::int64_t q_place = 0;

    std::int64_t elements() const { return rows * columns; }
  };
  struct DensePart {
    std::string name;
    std::int64_t offset = 0;
    std::int64_t length = 0;
    std::int64_t place = 0;  ///< among all dense elements
  };

  /// Factors where they are less than half of the matrix: (rows + columns) * rank * 2 < rows *
  /// columns. So a rank that is not under half of a matrix's smaller side leaves it dense.
  Shape(const layout::Layout& layout, std::int64_t rank);
  /// All dense.
  static Shape dense(const layout::Layout& layout) { return Shape(layout, 0); }

  std::vector<Matrix> matrices;
  std::vector<DensePart> dense_parts;
  std::int64_t p_elements = 0;
  std::int64_t q_elements = 0;
  std::int64_t dense_elements = 0;
};

}  // namespace scalecom::methods::powersgd
