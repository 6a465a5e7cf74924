#include "scalecom/methods/dense_mean.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <limits>

#include "scalecom/kernels/kernels.h"
#include "scalecom/methods/blocks.h"

namespace scalecom::methods {

bool DenseMean::operator()(const core::Buffer& grad, comm::Communicator& communicator) {
  const kernels::Table& table = kernels::table();
  const bool wide_already = grad.dtype == core::DType::kFloat32;
  if (!wide_already && wide_.size() < grad.elements) {
    wide_ = core::AlignedArray<float>(grad.elements);
  }
  float* wide = wide_already ? static_cast<float*>(grad.data) : wide_.data();
  const float factor = 1.0F / static_cast<float>(communicator.size());
  for_each_block(grad.elements, [&](std::int64_t begin, std::int64_t end) {
    table.load(element(grad, begin), grad.dtype, end - begin, factor, wide + begin);
  });
  communicator.all_reduce({wide, static_cast<std::size_t>(grad.elements)});
  std::atomic<bool> finite{true};
  for_each_block(grad.elements, [&](std::int64_t begin, std::int64_t end) {
    if (!table.load(wide + begin, core::DType::kFloat32, end - begin, 1.0F, wide + begin)) {
      finite.store(false, std::memory_order_relaxed);
    }
    if (!wide_already) {
      table.store(wide + begin, end - begin, 1.0F, element(grad, begin), grad.dtype);
    }
  });
  return finite;
}

void fill_nan(const core::Buffer& grad) {
  const kernels::Table& table = kernels::table();
  for_each_block(grad.elements, [&](std::int64_t begin, std::int64_t end) {
    std::array<float, 1024> nan;
    nan.fill(std::numeric_limits<float>::quiet_NaN());
    for (std::int64_t at = begin; at < end; at += static_cast<std::int64_t>(nan.size())) {
      const auto count = std::min<std::int64_t>(end - at, static_cast<std::int64_t>(nan.size()));
      table.store(nan.data(), count, 1.0F, element(grad, at), grad.dtype);
    }
  });
}

}  // namespace scalecom::methods
