#pragma once

#include <cstdint>

#include "scalecom/core/stream.h"
#include "train/models/together/cuda/places.h"

namespace train::models::together::cuda {

/// What columns_of() says, in order on `stream`.
void write_columns(const void* x, const Places& in, std::int64_t kernel, std::int64_t stride,
                   void* columns, const scalecom::core::Stream& stream);

}  // namespace train::models::together::cuda
