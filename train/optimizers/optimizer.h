#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "scalecom/core/device.h"
#include "scalecom/core/stream.h"
#include "scalecom/layout/layout.h"

namespace train::optimizers {

/// Linear from 0 to `peak` over the first `warmup` share of the steps, then linear to 0.
struct Schedule {
  double peak = 0.1;
  double warmup = 0.1;  ///< in [0, 1)
  std::int64_t steps = 1;

  /// The learning rate of step `step`, the first being 0.
  double rate(std::int64_t step) const;
};

/// What a gradient does to one flat array of weights. Weight decay is left out for tensors of one
/// dimension. The bits are the same on every device.
class Optimizer {
 public:
  enum class Kind : std::uint8_t {
    kSgd,   ///< stochastic gradient descent with Nesterov momentum
    kAdam,  ///< Adam, with decoupled weight decay
  };

  struct Options {
    Kind kind = Kind::kSgd;
    double momentum = 0.9;  ///< Adam's first factor
    double weight_decay = 5e-4;
    /// The gradients that step() is given have momentum in them (methods::Method::brings_momentum):
    /// only the weight decay is given it here. Of SGD.
    bool gradient_has_momentum = false;
    /// The momentum is kept for all weights, but moves none whose gradient is 0: nothing was sent
    /// for it. Weights decay in every step all the same, apart from the momentum. Of SGD.
    bool masked = false;
  };

  virtual ~Optimizer() = default;

  /// Step `step`, the first being 0. All arrays have the elements of the tensors together and lie
  /// on the device, of which `stream` is.
  virtual void step(std::span<float> weights, std::span<const float> gradient, double rate,
                    std::int64_t step, const scalecom::core::Stream& stream) = 0;

  /// What it remembers of each weight, on the device.
  struct State {
    std::string name;
    std::span<float> values;
  };
  virtual std::vector<State> states() = 0;
};

/// "sgd" or "adam", and back. core::UsageError for another name.
Optimizer::Kind parse_optimizer(const std::string& name);
std::string to_string(Optimizer::Kind kind);

std::unique_ptr<Optimizer> make_optimizer(std::span<const scalecom::layout::Tensor> tensors,
                                          const Optimizer::Options& options,
                                          scalecom::core::Device device = {});

}  // namespace train::optimizers
