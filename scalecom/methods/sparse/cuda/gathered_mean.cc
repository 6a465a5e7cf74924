#include "scalecom/methods/sparse/cuda/gathered_mean.h"

#include "scalecom/kernels/elementwise.h"

namespace scalecom::methods::sparse::cuda {
namespace {

namespace elementwise = kernels::elementwise;

}  // namespace

GatheredMean::GatheredMean(core::Device device, std::int64_t elements)
    : elements_(elements), flag_(device, 1), sent_(device, 1), refused_(device, 1) {}

void GatheredMean::reserve(core::DType dtype) {
  if (dtype == core::DType::kFloat32 || wide_.size() == elements_) return;
  wide_ = core::Array<float>(flag_.device(), elements_);
}

void GatheredMean::operator()(const core::Buffer& grad, const Shape& shape,
                              std::span<const Message> messages, std::span<const float> rest,
                              float factor, const core::Stream& stream) {
  const bool wide_already = grad.dtype == core::DType::kFloat32;
  float* const sums = wide_already ? static_cast<float*>(grad.data) : wide_.data();
  core::cuda::set_zero(flag_.data(), sizeof(elementwise::Flag), stream);
  core::cuda::set_zero(sums, grad.elements * static_cast<std::int64_t>(sizeof(float)), stream);
  for (const Message& message : messages) {
    kernels::cuda::add_gathered(message.d_parts, message.parts, message.items, message.d_bytes,
                                factor, sums, flag_.data(), stream);
  }
  for (const Shape::DensePart& part : shape.dense_parts) {
    elementwise::load(rest.data() + part.place, core::DType::kFloat32, part.length, 1.0F,
                      sums + part.offset, stream);
  }
  elementwise::check_finite(rest.data(), static_cast<std::int64_t>(rest.size()), flag_.data(),
                            stream);
  kernels::cuda::flag_unless_zero(&rest.back(), flag_.data(), stream);
  if (wide_already) {
    kernels::cuda::fill_nan_if(flag_.data(), sums, grad.elements, stream);
  } else {
    elementwise::store(sums, grad.elements, grad.data, grad.dtype, flag_.data(), stream);
  }
  kernels::cuda::decide_sent(flag_.data(), sent_.data(), refused_.data(), stream);
}

bool GatheredMean::was_sent(const core::Stream& stream) const {
  std::int32_t sent = 0;
  core::cuda::copy(&sent, sent_.data(), sizeof sent, stream);
  core::cuda::synchronize(stream);
  return sent != 0;
}

void GatheredMean::forget_sent(const core::Stream& stream) {
  core::cuda::set_zero(sent_.data(), sizeof(std::int32_t), stream);
}

}  // namespace scalecom::methods::sparse::cuda
