#include "scalecom/methods/dense_mean.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <limits>

#include "scalecom/kernels/kernels.h"
#include "scalecom/methods/blocks.h"

namespace scalecom::methods {

bool DenseMean::operator()(const core::Buffer& grad, comm::Communicator& communicator,
                           const Add& add) {
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
  if (add) add(wide, factor);
  communicator.all_reduce({wide, static_cast<std::size_t>(grad.elements)});
  const bool finite = all_finite({wide, static_cast<std::size_t>(grad.elements)}, 1.0F);
  if (!finite) {
    fill_nan(grad);
  } else if (!wide_already) {
    for_each_block(grad.elements, [&](std::int64_t begin, std::int64_t end) {
      table.store(wide + begin, end - begin, 1.0F, element(grad, begin), grad.dtype);
    });
  }
  return finite;
}

bool all_finite(std::span<float> numbers, float factor) {
  const kernels::Table& table = kernels::table();
  std::atomic<bool> finite{true};
  for_each_block(static_cast<std::int64_t>(numbers.size()),
                 [&](std::int64_t begin, std::int64_t end) {
                   float* part = numbers.data() + begin;
                   if (!table.load(part, core::DType::kFloat32, end - begin, factor, part))
                     finite = false;
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
