#pragma once

#include <cstdint>

#include "scalecom/core/stream.h"
#include "train/models/together/cuda/places.h"

namespace train::models::together::cuda {

/// What is normed: each learner's rows of channels, in bf16; then cut off at both ends.
struct Normed {
  std::int64_t learners = 1;
  std::int64_t rows = 1;  ///< of a learner
  std::int64_t channels = 1;
  float least = 0;
  float most = 0;
};

/// The elements of a scratch array for sums over parts.
std::int64_t parts_elements(const Normed& normed);

struct NormForward {
  const void* x;
  const void* added;  ///< or none
  const float* scale;
  const float* bias;
  float* scratch;  ///< twice parts_elements()
  float* mean;     ///< of each learner and channel, as the next two
  float* variance;
  float* inverse;  ///< of the standard deviation
  void* y;
};
void batch_norm_forward(const Normed& normed, const NormForward& pass,
                        const scalecom::core::Stream& stream);

struct NormBackward {
  const void* grad;
  const void* x;
  const void* y;
  const float* scale;
  const float* mean;
  const float* inverse;
  float* scratch;     ///< twice parts_elements()
  float* grad_scale;  ///< of each learner and channel, as the next
  float* grad_bias;
  void* grad_x;
  void* grad_added;  ///< or none
};
void batch_norm_backward(const Normed& normed, const NormBackward& pass,
                         const scalecom::core::Stream& stream);

}  // namespace train::models::together::cuda
