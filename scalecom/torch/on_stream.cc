#include "scalecom/torch/on_stream.h"

#include <cstring>

#include "scalecom/core/cuda/runtime.h"
#include "scalecom/core/error.h"
#include "scalecom/core/text.h"

namespace scalecom::torch {

at::Device device_of(const core::Stream& stream) {
  if (!stream.device().is_cuda()) return {at::kCPU};
  return {at::kCUDA, static_cast<c10::DeviceIndex>(stream.device().index)};
}

core::Buffer buffer_of(const at::Tensor& tensor) {
  if (tensor.layout() != at::kStrided) {
    throw core::UsageError(
        "[torch] a sparse gradient, as an embedding with sparse=True has; scalecom takes dense "
        "gradients: make the embedding with sparse=False");
  }
  core::Buffer buffer{tensor.data_ptr(), tensor.numel()};
  switch (tensor.scalar_type()) {
    case at::kFloat:
      buffer.dtype = core::DType::kFloat32;
      break;
    case at::kHalf:
      buffer.dtype = core::DType::kFloat16;
      break;
    case at::kBFloat16:
      buffer.dtype = core::DType::kBFloat16;
      break;
    default:
      throw core::UsageError(core::concat("[torch] a gradient of type ",
                                          c10::toString(tensor.scalar_type()),
                                          "; gradients are float32, float16 or bfloat16"));
  }
  if (tensor.is_cuda()) buffer.device = core::Device::cuda(tensor.get_device());
  return buffer;
}

void copy(std::span<std::byte> to, std::span<const std::byte> from, const core::Stream& stream) {
  if (stream.device().is_cuda()) {
    core::cuda::copy(to.data(), from.data(), static_cast<std::int64_t>(from.size()), stream);
  } else if (!from.empty()) {
    std::memmove(to.data(), from.data(), from.size());
  }
}

}  // namespace scalecom::torch
