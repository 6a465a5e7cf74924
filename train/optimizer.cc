#include "train/optimizer.h"

namespace train {

double Schedule::rate(std::int64_t step) const {
  const double done = static_cast<double>(step + 1) / static_cast<double>(steps + 1);
  return peak * (done < warmup ? done / warmup : (1 - done) / (1 - warmup));
}

Sgd::Sgd(std::span<const scalecom::layout::Tensor> tensors, const Options& options)
    : factor_(static_cast<float>(options.momentum)) {
  std::size_t at = 0;
  for (const auto& tensor : tensors) {
    const std::size_t end = at + static_cast<std::size_t>(tensor.elements());
    const double decay = tensor.shape.size() > 1 ? options.weight_decay : 0;
    slices_.push_back({at, end, static_cast<float>(decay)});
    at = end;
  }
  momentum_ = scalecom::core::AlignedArray<float>(static_cast<std::int64_t>(at));
}

void Sgd::step(std::span<float> weights, std::span<const float> gradient, double rate) {
  const auto step_size = static_cast<float>(rate);
  float* const w = weights.data();
  float* const v = momentum_.data();
  const float* const g = gradient.data();
  for (const Slice& slice : slices_) {
    for (std::size_t i = slice.begin; i < slice.end; ++i) {
      const float slope = g[i] + slice.weight_decay * w[i];
      v[i] = factor_ * v[i] + slope;
      w[i] -= step_size * (slope + factor_ * v[i]);
    }
  }
}

}  // namespace train
