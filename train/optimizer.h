#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "scalecom/core/array.h"
#include "scalecom/core/stream.h"
#include "scalecom/layout/layout.h"
#include "train/cuda/sgd.h"

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
/// is left out for tensors of one dimension. The bits are the same on every device.
class Sgd {
 public:
  struct Options {
    double momentum = 0.9;
    double weight_decay = 5e-4;
    /// The gradients that step() is given have momentum in them (methods::Method::brings_momentum):
    /// only the weight decay is given it here.
    bool gradient_has_momentum = false;
  };

  Sgd(std::span<const scalecom::layout::Tensor> tensors, const Options& options,
      scalecom::core::Device device = {});

  /// All arrays have the elements of the tensors together and lie on the device, of which `stream`
  /// is.
  void step(std::span<float> weights, std::span<const float> gradient, double rate,
            const scalecom::core::Stream& stream = {});

  std::span<float> momentum() { return momentum_.span(); }

 private:
  float factor_;
  bool gradient_has_momentum_;
  std::vector<cuda::SgdSlice> slices_;
  scalecom::core::Array<float> momentum_;
  scalecom::core::Array<cuda::SgdSlice> tiles_;  // of a GPU
};

}  // namespace train
