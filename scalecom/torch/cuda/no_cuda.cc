#include "scalecom/torch/on_stream.h"
#include "scalecom/torch/side_stream.h"

// This libtorch, or this build, has no CUDA: no tensor on a GPU comes here.
namespace scalecom::torch {

struct OnStream::Guard {};
OnStream::OnStream(const core::Stream& /*stream*/) {}
OnStream::~OnStream() = default;

bool has_cuda() {
  return false;
}

core::Stream side_stream(core::Device device) {
  return core::Stream::cuda(device);  // which says why there is none
}

core::Stream current_stream(core::Device device) {
  return core::Stream::cuda(device);
}

void wait_for_current(const core::Stream& /*side*/) {}

}  // namespace scalecom::torch
