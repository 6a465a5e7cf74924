#pragma once

#include <cmath>
#include <cstdint>
#include <vector>

#include "scalecom/core/array.h"
#include "train/machine/host_copy.h"
#include "train/models/classifier.h"

namespace train::models {

/// Samples of floats that are nothing in particular.
inline data::Samples some_samples(const Shape& shape, std::int64_t size, int classes) {
  data::Samples samples;
  samples.shape = shape;
  for (std::int64_t i = 0; i < size * shape.elements(); ++i) {
    samples.floats.push_back(std::sin(static_cast<float>(i * i % 977)));
  }
  for (std::int64_t i = 0; i < size; ++i) {
    samples.labels.push_back(static_cast<std::uint8_t>(i % classes));
  }
  return samples;
}

inline std::vector<data::Pick> first_picks(int count) {
  std::vector<data::Pick> picks;
  for (std::int32_t i = 0; i < count; ++i) picks.push_back({i});
  return picks;
}

struct Gradient {
  std::vector<float> values;
  float loss = 0;
};

inline scalecom::core::Stream stream_of(const Classifier& classifier) {
  const auto device = classifier.device();
  return device.is_cuda() ? scalecom::core::Stream::cuda(device) : scalecom::core::Stream();
}

inline std::vector<float> on_host(std::span<const float> values,
                                  const scalecom::core::Stream& stream) {
  const auto host = machine::to_host(values, stream);
  return {host.data(), host.data() + host.size()};
}

inline Gradient gradient_of(Classifier& classifier, std::span<const data::Pick> picks,
                            bool keeps_figures = false) {
  const auto stream = stream_of(classifier);
  scalecom::core::Array<float> gradient(classifier.device(), classifier.model().elements());
  scalecom::core::Array<float> loss(classifier.device(), 1);
  const Batch batch{picks, gradient.span(), loss.data(), keeps_figures, stream};
  classifier.gradients({&batch, 1});
  return {on_host(gradient.span(), stream), on_host(loss.span(), stream)[0]};
}

/// Moves all weights a little, so that none is 0, as some are at first.
inline void disturb(Classifier& classifier) {
  const auto stream = stream_of(classifier);
  auto weights = on_host(classifier.weights(), stream);
  for (std::size_t i = 0; i < weights.size(); ++i) {
    weights[i] += 0.2F * std::sin(static_cast<float>(i * i % 977));
  }
  machine::from_host(weights, classifier.weights(), stream);
  classifier.weights_written(stream);
}

/// The largest error of the gradient of the batch of all of `picks`, against differences of its
/// loss, over the largest slope.
inline double worst_slope(Classifier& classifier, std::span<const data::Pick> picks, float step) {
  const auto weights = classifier.weights();
  const std::vector<float> gradient = gradient_of(classifier, picks).values;
  double worst = 0;
  double largest = 0;
  for (std::size_t i = 0; i < weights.size(); ++i) {
    const float kept = weights[i];
    weights[i] = kept + step;
    const double above = gradient_of(classifier, picks).loss;
    weights[i] = kept - step;
    const double below = gradient_of(classifier, picks).loss;
    weights[i] = kept;
    const double slope = (above - below) / (2 * step);
    worst = std::max(worst, std::abs(slope - gradient[i]));
    largest = std::max(largest, std::abs(slope));
  }
  return worst / largest;
}

}  // namespace train::models
