#include "scalecom/kernels/reference/bins.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "scalecom/kernels/reference/reference.h"

namespace scalecom::kernels::reference {

std::int64_t find_in_bin(const Tensor& tensor, std::int64_t begin, std::int64_t end,
                         bins::Found& found) {
  const auto* const grad = static_cast<const std::byte*>(tensor.grad);
  found.largest = 0;
  std::vector<float> h;
  for (std::int64_t i = begin; i < end; ++i) {
    float g = 0;
    table().load(grad + i * core::size_of(tensor.dtype), tensor.dtype, 1, 1.0F, &g);
    if (!std::isfinite((tensor.memory[i] + g) + g)) {
      found.finite = false;
      g = 0;
    }
    tensor.memory[i] += g;
    h.push_back(std::abs(tensor.memory[i] + g));
    found.largest = std::max(found.largest, std::abs(tensor.memory[i]));
  }
  std::int64_t count = 0;
  for (std::int64_t i = begin; i < end; ++i) {
    if (h[static_cast<std::size_t>(i - begin)] < found.largest || tensor.memory[i] == 0) continue;
    found.positions[count++] = static_cast<std::uint32_t>(i);
  }
  return count;
}

}  // namespace scalecom::kernels::reference
