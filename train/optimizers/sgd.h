#pragma once

#include "scalecom/core/array.h"
#include "train/optimizers/cuda/sgd.h"
#include "train/optimizers/optimizer.h"

namespace train::optimizers {

class Sgd final : public Optimizer {
 public:
  Sgd(std::span<const scalecom::layout::Tensor> tensors, const Options& options,
      scalecom::core::Device device = {});

  void step(std::span<float> weights, std::span<const float> gradient, double rate,
            std::int64_t step, const scalecom::core::Stream& stream) override;
  std::vector<State> states() override { return {{"momentum", momentum_.span()}}; }

 private:
  cuda::SgdFactors factors_;
  std::vector<cuda::WeightSlice> slices_;
  scalecom::core::Array<float> momentum_;
  scalecom::core::Array<cuda::WeightSlice> tiles_;  // of a GPU
};

}  // namespace train::optimizers
