#pragma once

#include <memory>
#include <vector>

#include "scalecom/comm/communicator.h"
#include "scalecom/layout/rates.h"
#include "scalecom/methods/method.h"

namespace scalecom::torch {

/// The rates of a model under a method. Where they follow from FLOPs, which the first forward pass
/// shows, they are known from the first reduction on.
class ModelRates {
 public:
  /// The model's tensors, in its own order. Where the policy asks for FLOPs, set_flops() follows.
  /// UsageError for what layout::RatePlan refuses.
  ModelRates(std::vector<layout::Tensor> tensors, const layout::RatePolicy& policy);

  /// Other rates from now on; FLOPs stay known. UsageError as above, and for rates by FLOPs where
  /// the policy at first did not ask for them, so that nobody counts; then nothing has changed.
  void set_policy(const layout::RatePolicy& policy);

  bool wants_flops() const;
  /// FLOPs per gradient by tensor: before the first reduction.
  void set_flops(const std::vector<double>& flops_per_gradient);

  /// The plan, made when it is first asked for: every rank asks for it at the same time, and the
  /// first rank's FLOPs are everybody's.
  const layout::RatePlan& plan(comm::Communicator& communicator);
  /// The rate of each tensor; 1 travels dense. UsageError where FLOPs are still unknown.
  std::vector<double> rates() const;

  const std::vector<layout::Tensor>& tensors() const { return tensors_; }

 private:
  std::vector<layout::Tensor> tensors_;
  layout::RatePolicy policy_;
  std::unique_ptr<layout::RatePlan> plan_;
  bool has_flops_;  // or will have them before the first reduction
};

}  // namespace scalecom::torch
