#pragma once

#include <cstdint>

#include "scalecom/core/stream.h"

namespace train::models::layers::cuda {

/// The gradient of each learner's table of rows: of each row, the sum over the learner's tokens
/// that took it, in their order. In order on `stream`.
struct TableGradient {
  const std::int64_t* tokens;
  std::int64_t learners;
  std::int64_t count;  ///< of tokens of a learner
  const float* grad;   ///< (learners, count, width)
  std::int64_t width;
  std::int64_t rows;  ///< of a table
  std::int64_t none;  ///< a token whose row has no gradient, or -1
  float* grad_table;  ///< (learners, rows, width), all of which is written
};
void token_table_gradient(const TableGradient& pass, const scalecom::core::Stream& stream);

}  // namespace train::models::layers::cuda
