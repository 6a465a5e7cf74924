#pragma once

#include "scalecom/core/array.h"
#include "train/optimizers/cuda/adam.h"
#include "train/optimizers/optimizer.h"

namespace train::optimizers {

/// Adam as in the Transformer's paper (Vaswani et al., 2017): the second factor is 0.98, and 1e-9
/// is added to the root.
class Adam final : public Optimizer {
 public:
  Adam(std::span<const scalecom::layout::Tensor> tensors, const Options& options,
       scalecom::core::Device device = {});

  void step(std::span<float> weights, std::span<const float> gradient, double rate,
            std::int64_t step, const scalecom::core::Stream& stream) override;
  /// The running means of the gradient and of its square.
  std::vector<State> states() override {
    return {{"mean", mean_.span()}, {"square", square_.span()}};
  }

 private:
  double mean_factor_;
  std::vector<cuda::WeightSlice> slices_;
  scalecom::core::Array<float> mean_;
  scalecom::core::Array<float> square_;
  scalecom::core::Array<cuda::WeightSlice> tiles_;  // of a GPU
};

}  // namespace train::optimizers
