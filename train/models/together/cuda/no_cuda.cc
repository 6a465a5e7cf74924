#include "scalecom/core/error.h"
#include "train/models/together/on_device.h"

/// Never called: without CUDA there are no tensors on a GPU.
namespace train::models::together {
namespace {

[[noreturn]] void refuse() {
  throw scalecom::core::UsageError("[train] the libtorch of this build has no CUDA");
}

}  // namespace

namespace cuda {

void write_columns(const void* /*x*/, const Places& /*in*/, std::int64_t /*kernel*/,
                   std::int64_t /*stride*/, void* /*columns*/,
                   const scalecom::core::Stream& /*stream*/) {
  refuse();
}

std::int64_t parts_elements(const Normed& /*normed*/) {
  refuse();
}
void batch_norm_forward(const Normed& /*normed*/, const NormForward& /*pass*/,
                        const scalecom::core::Stream& /*stream*/) {
  refuse();
}
void batch_norm_backward(const Normed& /*normed*/, const NormBackward& /*pass*/,
                         const scalecom::core::Stream& /*stream*/) {
  refuse();
}

void depthwise_forward(const void* /*x*/, const float* /*weights*/, const Places& /*in*/,
                       std::int64_t /*stride*/, void* /*y*/,
                       const scalecom::core::Stream& /*stream*/) {
  refuse();
}
void depthwise_input(const void* /*grad*/, const float* /*weights*/, const Places& /*in*/,
                     std::int64_t /*stride*/, void* /*grad_x*/,
                     const scalecom::core::Stream& /*stream*/) {
  refuse();
}
std::int64_t depthwise_parts(const Places& /*in*/, std::int64_t /*learners*/,
                             std::int64_t /*stride*/) {
  refuse();
}
void depthwise_weights(const void* /*grad*/, const void* /*x*/, const Places& /*in*/,
                       std::int64_t /*learners*/, std::int64_t /*stride*/, float* /*scratch*/,
                       float* /*grad_weights*/, const scalecom::core::Stream& /*stream*/) {
  refuse();
}

}  // namespace cuda
}  // namespace train::models::together
