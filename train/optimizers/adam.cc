#include "train/optimizers/adam.h"

#include <cmath>

#include "train/optimizers/slices.h"

namespace train::optimizers {
namespace {

constexpr double kSquareFactor = 0.98;
constexpr float kEpsilon = 1e-9F;

}  // namespace

Adam::Adam(std::span<const scalecom::layout::Tensor> tensors, const Options& options,
           scalecom::core::Device device)
    : mean_factor_(options.momentum),
      slices_(weight_slices(tensors, options.weight_decay)),
      mean_(device, elements(slices_)),
      square_(device, elements(slices_)) {
  if (device.is_cuda()) tiles_ = cuda::make_tiles(device, slices_);
}

void Adam::step(std::span<float> weights, std::span<const float> gradient, double rate,
                std::int64_t step, const scalecom::core::Stream& stream) {
  // Both means begin at 0; what they lack for it is made up for.
  const auto steps = static_cast<double>(step + 1);
  const double mean_share = 1 - std::pow(mean_factor_, steps);
  const double root_share = std::sqrt(1 - std::pow(kSquareFactor, steps));
  const cuda::AdamFactors factors{
      static_cast<float>(rate),           static_cast<float>(mean_factor_),
      static_cast<float>(kSquareFactor),  static_cast<float>(1 / mean_share),
      static_cast<float>(1 / root_share), kEpsilon};
  float* const w = weights.data();
  float* const m = mean_.data();
  float* const s = square_.data();
  const float* const g = gradient.data();
  if (mean_.device().is_cuda()) {
    cuda::adam_step(tiles_, w, m, s, g, factors, stream);
    return;
  }
  for (const cuda::WeightSlice& slice : slices_) {
    for (std::int64_t i = slice.begin; i < slice.end; ++i) {
      m[i] = factors.mean * m[i] + (1 - factors.mean) * g[i];
      s[i] = factors.square * s[i] + (1 - factors.square) * (g[i] * g[i]);
      const float root = factors.root_scale * std::sqrt(s[i]) + factors.epsilon;
      const float direction = factors.mean_scale * m[i] / root;
      w[i] -= factors.rate * (direction + slice.weight_decay * w[i]);
    }
  }
}

}  // namespace train::optimizers
