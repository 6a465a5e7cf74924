#pragma once

#include <cmath>
#include <vector>

#include "scalecom/core/array.h"
#include "train/machine/host_copy.h"
#include "train/models/sequence.h"

namespace train::models {

struct SequenceGradient {
  std::vector<float> values;
  float loss = 0;
};

inline scalecom::core::Stream stream_of(const SequenceEngine& engine) {
  return engine.device().is_cuda() ? scalecom::core::Stream::cuda(engine.device())
                                   : scalecom::core::Stream();
}

inline std::vector<float> on_host(std::span<const float> values,
                                  const scalecom::core::Stream& stream) {
  const auto host = machine::to_host(values, stream);
  return {host.data(), host.data() + host.size()};
}

inline SequenceGradient gradient_of(SequenceEngine& engine, const Rows& rows, int noise = 0) {
  const auto stream = stream_of(engine);
  scalecom::core::Array<float> gradient(engine.device(), engine.parameters().elements());
  scalecom::core::Array<float> loss(engine.device(), 1);
  const SequenceBatch batch{rows, noise, gradient.span(), loss.data(), stream};
  engine.gradients({&batch, 1});
  return {on_host(gradient.span(), stream), on_host(loss.span(), stream)[0]};
}

/// The largest error of the gradient against differences of the loss, over the largest slope; for
/// every `every`-th weight of an engine on the host.
inline double worst_slope(SequenceEngine& engine, const Rows& rows, std::size_t every, float step,
                          int noise = 0) {
  const auto weights = engine.weights();
  const std::vector<float> gradient = gradient_of(engine, rows, noise).values;
  double worst = 0;
  double largest = 0;
  for (std::size_t i = 0; i < weights.size(); i += every) {
    const float kept = weights[i];
    weights[i] = kept + step;
    const double above = gradient_of(engine, rows, noise).loss;
    weights[i] = kept - step;
    const double below = gradient_of(engine, rows, noise).loss;
    weights[i] = kept;
    const double slope = (above - below) / (2 * step);
    worst = std::max(worst, std::abs(slope - gradient[i]));
    largest = std::max(largest, std::abs(slope));
  }
  return worst / largest;
}

}  // namespace train::models
