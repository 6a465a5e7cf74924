#include "scalecom/methods/dense_slices.h"

#include "scalecom/core/error.h"
#include "scalecom/core/text.h"
#include "scalecom/kernels/elementwise.h"

namespace scalecom::methods {

namespace elementwise = kernels::elementwise;

void DenseSlices::add(const layout::Slice& slice) {
  parts_.push_back({slice.name, slice.offset, slice.length});
  elements_ += slice.length;
}

bool DenseSlices::load(const core::Buffer& grad, float factor, float* out) const {
  float* to = out;
  for (const Part& part : parts_) {
    elementwise::load(grad.at(part.offset), grad.dtype, part.length, factor, to, {});
    to += part.length;
  }
  elementwise::Flag flag = 0;
  elementwise::check_finite(out, elements_, &flag, {});
  return flag == 0;
}

void DenseSlices::store(const float* in, const core::Buffer& grad) const {
  const elementwise::Flag flag = 0;
  for (const Part& part : parts_) {
    elementwise::store(in, part.length, grad.at(part.offset), grad.dtype, &flag, {});
    in += part.length;
  }
}

void DenseSlices::fold(MemoryStore& memories, float factor, float* dense, Order order) const {
  std::int64_t place = 0;
  for (const Part& part : parts_) {
    const std::int64_t at = order == Order::kAsInTheBucket ? part.offset : place;
    if (const float* const memory = memories.find(part.name, part.length)) {
      elementwise::add_quotient(dense + at, memory, part.length, 1.0F, factor, {});
    }
    place += part.length;
  }
}

void DenseSlices::set_aside(MemoryStore& memories) const {
  for (const Part& part : parts_) memories.set_aside(part.name);
}

void spoil(const core::Buffer& grad) {
  const elementwise::Flag flag = 1;
  elementwise::store(nullptr, grad.elements, grad.data, grad.dtype, &flag, {});
}

void require_host(const std::string& method, core::Device device) {
  if (!device.is_cuda()) return;
  throw core::UsageError(core::concat("[", method, "] works on gradients in host memory, and this ",
                                      "one is on ", core::to_string(device)));
}

}  // namespace scalecom::methods
