#include "train/models/current_stream.h"

#include <c10/cuda/CUDAStream.h>

namespace train::models {

scalecom::core::Stream current_stream(const at::Tensor& x) {
  const auto stream = c10::cuda::getCurrentCUDAStream(x.get_device());
  return scalecom::core::Stream::wrap(scalecom::core::Device::cuda(x.get_device()),
                                      stream.stream());
}

}  // namespace train::models
