#pragma once

#include <cstdint>

#include "scalecom/core/dtype.h"
#include "scalecom/core/stream.h"

namespace bench::cuda {

/// m += beta * g, as plainly as a GPU can do it.
void plain_pass(float* d_memory, const void* d_gradient, scalecom::core::DType type, float beta,
                std::int64_t elements, const scalecom::core::Stream& stream);

}  // namespace bench::cuda
