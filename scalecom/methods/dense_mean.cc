#include "scalecom/methods/dense_mean.h"

#include "scalecom/kernels/elementwise.h"

namespace scalecom::methods {

namespace elementwise = kernels::elementwise;

void DenseMean::reserve(core::DType dtype, std::int64_t elements, core::Device device) {
  if (dtype == core::DType::kFloat32) return;
  if (wide_.size() < elements || wide_.device() != device) {
    wide_ = core::Array<float>(device, elements);
  }
}

void DenseMean::operator()(const core::Buffer& grad, comm::Communicator& communicator,
                           const core::Stream& stream, const Add& add) {
  reserve(grad.dtype, grad.elements, grad.device);
  const bool wide_already = grad.dtype == core::DType::kFloat32;
  float* wide = wide_already ? static_cast<float*>(grad.data) : wide_.data();
  const float factor = 1.0F / static_cast<float>(communicator.size());
  flag_.clear(stream);
  elementwise::load(grad.data, grad.dtype, grad.elements, factor, wide, stream);
  if (add) add(wide, factor);
  communicator.all_reduce({wide, static_cast<std::size_t>(grad.elements)}, stream);
  elementwise::check_finite(wide, grad.elements, flag_.data(), stream);
  elementwise::store(wide, grad.elements, grad.data, grad.dtype, flag_.data(), stream);
}

}  // namespace scalecom::methods
