#pragma once

#include <cstdint>

#include "scalecom/core/stream.h"

namespace train::models::layers::cuda {

struct Ctc {
  std::int64_t samples = 0;
  std::int64_t steps = 0;
  std::int64_t classes = 0;
  std::int64_t most = 0;  ///< labels of a sample

  /// Nothing, the first label, nothing, the second, and so on.
  std::int64_t states() const { return 2 * most + 1; }
};

struct CtcPass {
  const float* log_probabilities;  ///< (samples, steps, classes)
  const std::int64_t* labels;      ///< (samples, most)
  float* scratch;                  ///< (samples, steps, states)
  float* losses;                   ///< (samples)
  float* slopes;                   ///< of a loss by its sample's logits: (samples, steps, classes)
};

/// What ctc_loss() says, in order on `stream`: both ways through the steps in one kernel.
void ctc(const Ctc& shape, const CtcPass& pass, const scalecom::core::Stream& stream);

}  // namespace train::models::layers::cuda
