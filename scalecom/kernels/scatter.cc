#include "scalecom/kernels/scatter.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

namespace scalecom::kernels {
namespace {

// Sums on their way to the gradient: they stay in the first-level cache.
constexpr std::int64_t kStage = 4096;

// Adds the items before `end` to the stage, which begins at `begin`, and steps over them.
bool add(Given& from, std::int64_t begin, std::int64_t end, float factor, float* stage) {
  bool finite = true;
  std::int64_t i = 0;
  for (; i < from.count && from.positions[i] < end; ++i) {
    float& sum = stage[from.positions[i] - begin];
    sum += from.values[i] * factor;
    finite = finite && std::isfinite(sum);
  }
  from.positions += i;
  from.values += i;
  from.count -= i;
  return finite;
}

}  // namespace

bool scatter_sum(const Tensor& tensor, std::int64_t begin, std::int64_t end,
                 std::span<const Given> ranks, float factor) {
  std::vector<Given> left(ranks.begin(), ranks.end());
  for (Given& given : left) {
    const std::uint32_t* first =
        std::lower_bound(given.positions, given.positions + given.count, begin);
    const std::ptrdiff_t before = first - given.positions;
    given = {first, given.values + before, given.count - before};
  }
  bool finite = true;
  std::array<float, kStage> stage;
  for (std::int64_t at = begin; at < end; at += kStage) {
    const std::int64_t stop = std::min(end, at + kStage);
    stage.fill(0.0F);
    for (Given& given : left) finite &= add(given, at, stop, factor, stage.data());
    table().store(stage.data(), stop - at, 1.0F,
                  static_cast<std::byte*>(tensor.grad) + at * core::size_of(tensor.dtype),
                  tensor.dtype);
  }
  return finite;
}

}  // namespace scalecom::kernels
