#pragma once

#include <cstdint>

#include "scalecom/core/stream.h"

namespace train::models::layers::cuda {

/// Which of the numbers that Dropout draws decide.
struct Drawn {
  const std::int32_t* noise = nullptr;  ///< on the device
  std::int32_t salt = 0;                ///< of the draw
  int byte = 0;                         ///< of each number
  int limit = 0;                        ///< under which it is dropped
};

/// What Dropout says, in order on `stream`.
void drop(const float* x, std::int64_t elements, const Drawn& drawn, float* y,
          const scalecom::core::Stream& stream);

}  // namespace train::models::layers::cuda
