#pragma once

#include <cstdint>

#include "scalecom/core/stream.h"

namespace train::models::layers::cuda {

/// Which of the numbers that Dropout draws decide.
struct Drawn {
  const std::int32_t* noise = nullptr;  ///< of each learner, on the device
  std::int64_t learners = 1;
  std::int64_t samples = 0;   ///< of a learner
  std::int64_t elements = 0;  ///< of a sample
  std::int64_t stride = 0;    ///< from one sample's first number to the next one's
  std::int32_t salt = 0;      ///< of the draw
  int byte = 0;               ///< of each number
  int limit = 0;              ///< under which it is dropped
};

/// What Dropout says, in order on `stream`.
void drop(const float* x, const Drawn& drawn, float* y, const scalecom::core::Stream& stream);

}  // namespace train::models::layers::cuda
