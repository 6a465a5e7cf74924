#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "scalecom/core/aligned_array.h"
#include "scalecom/layout/layout.h"

namespace train {

/// Linear from 0 to `peak` over the first `warmup` share of the steps, then linear to 0.
struct Schedule {
  double peak = 0.1;
  double warmup = 0.1;  ///< in [0, 1)
  std::int64_t steps = 1;

  /// The learning rate of step `step`, the first being 0.
  double rate(std::int64_t step) const;
};

/// Stochastic gradient descent with Nesterov momentum, over one flat array of weights. Weight decay
/// is left out for tensors of one dimension.
class Sgd {
 public:
  struct Options {
    double momentum = 0.9;
    double weight_decay = 5e-4;
  };

  Sgd(std::span<const scalecom::layout::Tensor> tensors, const Options& options);

  /// All arrays have the elements of the tensors together.
  void step(std::span<float> weights, std::span<const float> gradient, double rate);

  std::span<float> momentum() { return {momentum_.data(), elements()}; }

 private:
  struct Slice {
    std::size_t begin;
    std::size_t end;
    float weight_decay;
  };

  std::size_t elements() const { return static_cast<std::size_t>(momentum_.size()); }

  float factor_;
  std::vector<Slice> slices_;
  scalecom::core::AlignedArray<float> momentum_;
};

}  // namespace train
