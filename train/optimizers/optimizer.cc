#include "train/optimizers/optimizer.h"

#include "scalecom/core/error.h"
#include "scalecom/core/text.h"
#include "train/optimizers/adam.h"
#include "train/optimizers/sgd.h"

namespace train::optimizers {

double Schedule::rate(std::int64_t step) const {
  const double done = static_cast<double>(step + 1) / static_cast<double>(steps + 1);
  return peak * (done < warmup ? done / warmup : (1 - done) / (1 - warmup));
}

Optimizer::Kind parse_optimizer(const std::string& name) {
  for (const auto kind : {Optimizer::Kind::kSgd, Optimizer::Kind::kAdam}) {
    if (to_string(kind) == name) return kind;
  }
  throw scalecom::core::UsageError(
      scalecom::core::concat("[train] '", name, "' is not an optimizer; there are sgd and adam"));
}

std::string to_string(Optimizer::Kind kind) {
  return kind == Optimizer::Kind::kAdam ? "adam" : "sgd";
}

std::unique_ptr<Optimizer> make_optimizer(std::span<const scalecom::layout::Tensor> tensors,
                                          const Optimizer::Options& options,
                                          scalecom::core::Device device) {
  if (options.kind == Optimizer::Kind::kAdam) {
    return std::make_unique<Adam>(tensors, options, device);
  }
  return std::make_unique<Sgd>(tensors, options, device);
}

}  // namespace train::optimizers
