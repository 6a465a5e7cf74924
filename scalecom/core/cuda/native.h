#pragma once

#include <cuda_runtime_api.h>

#include "scalecom/core/stream.h"

namespace scalecom::core::cuda {

/// A stream as CUDA has it: for sources that are compiled with CUDA alone.
inline cudaStream_t native(const Stream& stream) {
  return static_cast<cudaStream_t>(stream.native());
}

}  // namespace scalecom::core::cuda
