#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "train/loop/replica.h"
#include "train/runs/config.h"

namespace comparison {

/// Where measurements take their gradients from: the task's model with its initial weights, on its
/// own data. What a rank gets is a function of (seed, rank, step, ranks).
class Probe {
 public:
  /// core::UsageError as train::tasks::make().
  explicit Probe(const train::runs::Config& config);

  std::span<const scalecom::layout::Tensor> tensors() const { return replica_.task().tensors(); }
  std::int64_t elements() const { return elements_; }
  std::int64_t batch() const { return config_.batch; }
  std::int64_t training_samples() const { return replica_.task().samples(); }

  /// The gradient of the mini-batch that is this rank's of `ranks` in step `step`. From any thread.
  void gradient(int ranks, int rank, std::int64_t step, std::span<float> gradient);

 private:
  train::runs::Config config_;
  train::loop::Replica replica_;
  std::int64_t elements_ = 0;
};

}  // namespace comparison
