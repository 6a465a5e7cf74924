#include <ATen/ATen.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/grad_mode.h>
#include <torch/csrc/autograd/variable.h>

#include <utility>

#include "scalecom/core/aligned_array.h"
#include "train/models/host_torch.h"
#include "train/models/sequence_pass.h"

namespace train::models {
namespace {

namespace core = scalecom::core;

at::Tensor to_tensor(const Rows& rows) {
  // from_blob() has no const; the tensor is copied at once.
  auto* const values = const_cast<std::int32_t*>(rows.values.data());  // NOLINT
  return at::from_blob(values, {rows.samples(), rows.width}, at::kInt).to(at::kLong);
}

std::vector<float> to_vector(const at::Tensor& numbers) {
  const at::Tensor flat = numbers.to(at::kFloat).contiguous();
  const float* const begin = flat.const_data_ptr<float>();
  return {begin, begin + flat.numel()};
}

class HostSequenceEngine final : public SequenceEngine {
 public:
  HostSequenceEngine(std::unique_ptr<SequenceModel> model, Options options)
      : model_(std::move(model)),
        options_(std::move(options)),
        weights_(model_->parameters().elements()) {
    be_deterministic();
    model_->parameters().initialise(options_.seed, weights());
    parameters_ = views(model_->parameters().tensors(), weights_.data());
    for (at::Tensor& parameter : parameters_) parameter.set_requires_grad(true);
    const auto entries = static_cast<std::int64_t>(options_.table.size()) / options_.columns;
    table_ = at::from_blob(options_.table.data(), {entries, options_.columns}, at::kFloat);
  }

  core::Device device() const override { return {}; }
  const Parameters& parameters() const override { return model_->parameters(); }
  std::span<float> weights() override {
    return {weights_.data(), static_cast<std::size_t>(weights_.size())};
  }
  void weights_written(const core::Stream& /*stream*/) override {}

  void gradients(std::span<const SequenceBatch> batches) override {
    compute_alone();
    for (const SequenceBatch& batch : batches) {
      SequenceModel::Pass pass = make_pass(batch.rows);
      pass.noise = at::full({1}, batch.noise, at::kInt);
      const at::Tensor loss = model_->loss(pass).tensor;
      copy_flat(torch::autograd::grad({loss}, parameters_), batch.gradient.data());
      *batch.loss = loss.item<float>();
    }
  }

  std::vector<float> score(const Rows& rows) override {
    compute_alone();
    const at::NoGradGuard no_gradient;
    return to_vector(model_->score(make_pass(rows)).tensor);
  }
  std::vector<float> answer(const Rows& rows) override {
    compute_alone();
    const at::NoGradGuard no_gradient;
    return to_vector(model_->answer(make_pass(rows)).tensor);
  }

 private:
  SequenceModel::Pass make_pass(const Rows& rows) const {
    return {to_tensor(rows), parameters_, table_, {}};
  }

  std::unique_ptr<SequenceModel> model_;
  Options options_;
  core::AlignedArray<float> weights_;
  std::vector<at::Tensor> parameters_;
  at::Tensor table_;
};

}  // namespace

SequenceModel::Numbers SequenceModel::answer(const Pass& pass) const {
  return score(pass);
}

std::unique_ptr<SequenceEngine> make_host_sequence_engine(std::unique_ptr<SequenceModel> model,
                                                          SequenceEngine::Options options) {
  return std::make_unique<HostSequenceEngine>(std::move(model), std::move(options));
}

}  // namespace train::models
