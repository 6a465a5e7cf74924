#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>

#include "scalecom/core/cuda/native.h"
#include "scalecom/core/cuda/runtime.h"
#include "scalecom/torch/on_stream.h"
#include "scalecom/torch/side_stream.h"

namespace scalecom::torch {
namespace {

c10::cuda::CUDAStream external(const core::Stream& stream) {
  return c10::cuda::getStreamFromExternal(core::cuda::native(stream),
                                          static_cast<c10::DeviceIndex>(stream.device().index));
}

}  // namespace

struct OnStream::Guard {
  explicit Guard(const core::Stream& stream) : guard(external(stream)) {}
  c10::cuda::CUDAStreamGuard guard;
};

OnStream::OnStream(const core::Stream& stream) {
  if (stream.device().is_cuda()) guard_ = std::make_unique<Guard>(stream);
}
OnStream::~OnStream() = default;

bool has_cuda() {
  return true;
}

core::Stream side_stream(core::Device device) {
  // torch's own, so that its allocator knows it; they live as long as the process.
  const auto stream = c10::cuda::getStreamFromPool(/*isHighPriority=*/true,
                                                   static_cast<c10::DeviceIndex>(device.index));
  return core::Stream::wrap(device, stream.stream());
}

core::Stream current_stream(core::Device device) {
  const auto current = c10::cuda::getCurrentCUDAStream(static_cast<c10::DeviceIndex>(device.index));
  return core::Stream::wrap(device, current.stream());
}

void wait_for_current(const core::Stream& side) {
  core::cuda::Event event(side.device());
  event.record(current_stream(side.device()));
  event.make_wait(side);
}

}  // namespace scalecom::torch
