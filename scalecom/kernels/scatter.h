#pragma once

#include <cstdint>
#include <span>

#include "scalecom/kernels/kernels.h"

namespace scalecom::kernels {

/// What one rank gives of a tensor: positions ascend.
struct Given {
  const std::uint32_t* positions = nullptr;
  const float* values = nullptr;
  std::int64_t count = 0;
};

/// The gradient becomes, in [begin, end), the sum of what the ranks give, each value times
/// `factor`, added to 0 in the order of ranks and rounded to the gradient's type as put does.
/// Returns whether all sums are finite.
bool scatter_sum(const Tensor& tensor, std::int64_t begin, std::int64_t end,
                 std::span<const Given> ranks, float factor);

}  // namespace scalecom::kernels
