#include "train/sgd.h"

#include "train/slices.h"

namespace train {

Sgd::Sgd(std::span<const scalecom::layout::Tensor> tensors, const Options& options,
         scalecom::core::Device device)
    : factors_{0, static_cast<float>(options.momentum), options.gradient_has_momentum,
               options.masked},
      slices_(weight_slices(tensors, options.weight_decay)),
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
      const float slope = gradient_has_momentum ? pull : g[i] + pull;
      v[i] = factor * v[i] + slope;
      const float step = slope + factor * v[i];
      if (masked && g[i] == 0) continue;
      w[i] -= step_size * (gradient_has_momentum ? g[i] + step : step);
    }
  }
}

}  // namespace train
