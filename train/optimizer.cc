#include "train/optimizer.h"

namespace train {

double Schedule::rate(std::int64_t step) const {
  const double done = static_cast<double>(step + 1) / static_cast<double>(steps + 1);
  return peak * (done < warmup ? done / warmup : (1 - done) / (1 - warmup));
}

Sgd::Sgd(std::span<const scalecom::layout::Tensor> tensors, const Options& options,
         scalecom::core::Device device)
    : factor_(static_cast<float>(options.momentum)),
      gradient_has_momentum_(options.gradient_has_momentum) {
  std::int64_t at = 0;
  for (const auto& tensor : tensors) {
    const std::int64_t end = at + tensor.elements();
    const double decay = tensor.shape.size() > 1 ? options.weight_decay : 0;
    slices_.push_back({at, end, static_cast<float>(decay)});
    at = end;
  }
  momentum_ = scalecom::core::Array<float>(device, at);
  if (device.is_cuda()) tiles_ = cuda::make_sgd_tiles(device, slices_);
}

void Sgd::step(std::span<float> weights, std::span<const float> gradient, double rate,
               const scalecom::core::Stream& stream) {
  const auto step_size = static_cast<float>(rate);
  float* const w = weights.data();
  float* const v = momentum_.data();
  const float* const g = gradient.data();
  if (momentum_.device().is_cuda()) {
    cuda::sgd_step(tiles_, w, v, g, {step_size, factor_, gradient_has_momentum_}, stream);
    return;
  }
  for (const cuda::SgdSlice& slice : slices_) {
    for (std::int64_t i = slice.begin; i < slice.end; ++i) {
      const float pull = slice.weight_decay * w[i];
      const float slope = gradient_has_momentum_ ? pull : g[i] + pull;
      v[i] = factor_ * v[i] + slope;
      const float step = slope + factor_ * v[i];
      w[i] -= step_size * (gradient_has_momentum_ ? g[i] + step : step);
    }
  }
}

}  // namespace train
