#include "scalecom/torch/model_rates.h"

#include <span>
#include <utility>

#include "scalecom/core/error.h"
#include "scalecom/core/text.h"

namespace scalecom::torch {

namespace {

bool by_flops(const layout::RatePolicy& policy) {
  return policy.kind == layout::RatePolicy::Kind::kFlops ||
         policy.kind == layout::RatePolicy::Kind::kPaper;
}

// Made at once where it can be, so that what is wrong with the rates is known at once.
std::unique_ptr<layout::RatePlan> early_plan(const std::vector<layout::Tensor>& tensors,
                                             const layout::RatePolicy& policy) {
  policy.check();
  return by_flops(policy) ? nullptr : std::make_unique<layout::RatePlan>(tensors, policy);
}

}  // namespace

ModelRates::ModelRates(std::vector<layout::Tensor> tensors, const layout::RatePolicy& policy)
    : tensors_(std::move(tensors)),
      policy_(policy),
      plan_(early_plan(tensors_, policy_)),
      has_flops_(by_flops(policy_)) {}

void ModelRates::set_policy(const layout::RatePolicy& policy) {
  if (by_flops(policy) && !has_flops_) {
    throw core::UsageError(core::concat(
        "[torch] rates=", policy.rates_text(),
        " needs FLOPs, which are counted in the first step where the method was registered with "
        "rates=flops or rates=paper, and this one was not; allowed: uniform, patterns"));
  }
  auto plan = early_plan(tensors_, policy);
  policy_ = policy;
  plan_ = std::move(plan);
}

bool ModelRates::wants_flops() const {
  return by_flops(policy_);
}

void ModelRates::set_flops(const std::vector<double>& flops_per_gradient) {
  if (flops_per_gradient.size() != tensors_.size()) {
    throw core::UsageError(core::concat("[torch] ", flops_per_gradient.size(),
                                        " figures of FLOPs for ", tensors_.size(), " parameters"));
  }
  for (std::size_t i = 0; i < tensors_.size(); ++i) {
    tensors_[i].flops_per_gradient = flops_per_gradient[i];
  }
  has_flops_ = true;
}

// Mini-batches may differ from rank to rank, rates may not.
const layout::RatePlan& ModelRates::plan(comm::Communicator& communicator) {
  if (plan_) return *plan_;
  std::vector<double> flops;
  for (const layout::Tensor& tensor : tensors_) flops.push_back(tensor.flops_per_gradient);
  communicator.broadcast(std::as_writable_bytes(std::span(flops)), 0);
  set_flops(flops);
  plan_ = std::make_unique<layout::RatePlan>(tensors_, policy_);
  return *plan_;
}

std::vector<double> ModelRates::rates() const {
  if (!plan_) throw core::UsageError("[torch] rates by FLOPs are known from the first step on");
  std::vector<double> rates;
  for (const layout::Tensor& tensor : tensors_) rates.push_back(plan_->rate_of(tensor.name));
  return rates;
}

}  // namespace scalecom::torch
