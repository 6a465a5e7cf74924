#include "train/optimizers/sgd.h"

#include "train/optimizers/slices.h"

namespace train::optimizers {
namespace {

/// Apart from the momentum, weights decay as much in the long run as they would with it.
double decay_a_step(const Optimizer::Options& options) {
  return options.masked ? options.weight_decay / (1 - options.momentum) : options.weight_decay;
}

}  // namespace

Sgd::Sgd(std::span<const scalecom::layout::Tensor> tensors, const Options& options,
         scalecom::core::Device device)
    : factors_{0, static_cast<float>(options.momentum), options.gradient_has_momentum,
               options.masked},
      slices_(weight_slices(tensors, decay_a_step(options))),
      momentum_(device, elements(slices_)) {
  if (device.is_cuda()) tiles_ = cuda::make_tiles(device, slices_);
}

void Sgd::step(std::span<float> weights, std::span<const float> gradient, double rate,
               std::int64_t /*step*/, const scalecom::core::Stream& stream) {
  factors_.rate = static_cast<float>(rate);
  float* const w = weights.data();
  float* const v = momentum_.data();
  const float* const g = gradient.data();
  if (momentum_.device().is_cuda()) {
    cuda::sgd_step(tiles_, w, v, g, factors_, stream);
    return;
  }
  const auto [step_size, factor, gradient_has_momentum, masked] = factors_;
  for (const cuda::WeightSlice& slice : slices_) {
    for (std::int64_t i = slice.begin; i < slice.end; ++i) {
      const float pull = slice.weight_decay * w[i];
      const float slope = (gradient_has_momentum ? 0 : g[i]) + (masked ? 0 : pull);
      v[i] = factor * v[i] + slope;
      const float step = (gradient_has_momentum ? g[i] : 0) + (slope + factor * v[i]);
      w[i] -= step_size * (masked ? (g[i] == 0 ? 0 : step) + pull : step);
    }
  }
}

}  // namespace train::optimizers
