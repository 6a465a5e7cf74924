#include "train/models/host.h"

#include <ATen/ATen.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/grad_mode.h>
#include <torch/csrc/autograd/variable.h>

#include <utility>

#include "scalecom/core/aligned_array.h"
#include "train/models/host_torch.h"
#include "train/models/pass.h"

namespace train::models {
namespace {

namespace core = scalecom::core;

/// What the model takes at once. Aligned, so that equal batches give equal bits.
class Inputs {
 public:
  Inputs(const data::Samples& samples, std::span<const data::Pick> picks)
      : shape_(samples.shape),
        values_(static_cast<std::int64_t>(picks.size()) * shape_.elements()) {
    const std::int64_t width = shape_.elements();
    float* to = values_.data();
    for (const data::Pick& pick : picks) {
      data::copy(samples, pick, {to, static_cast<std::size_t>(width)});
      labels_.push_back(samples.labels[static_cast<std::size_t>(pick.sample)]);
      to += width;
    }
  }

  at::Tensor x() {
    return at::from_blob(values_.data(), {size(), shape_.channels, shape_.height, shape_.width},
                         at::kFloat)
        .contiguous(at::MemoryFormat::ChannelsLast);
  }
  at::Tensor labels() { return at::from_blob(labels_.data(), {size()}, at::kLong); }

 private:
  std::int64_t size() const { return static_cast<std::int64_t>(labels_.size()); }

  Shape shape_;
  core::AlignedArray<float> values_;
  std::vector<std::int64_t> labels_;
};

class HostClassifier final : public Classifier {
 public:
  HostClassifier(std::unique_ptr<Model> model, data::Samples training, data::Samples test,
                 const Options& options)
      : model_(std::move(model)),
        training_(std::move(training)),
        test_(std::move(test)),
        weights_(model_->elements()),
        figures_(model_->figure_elements()) {
    be_deterministic();
    model_->initialise(options.seed, weights());
    model_->initialise_figures(figures());
    // The parameters share the memory of the flat weights.
    parameters_ = views(model_->tensors(), weights_.data());
    for (at::Tensor& parameter : parameters_) parameter.set_requires_grad(true);
    running_ = views(model_->figures(), figures_.data());
  }

  core::Device device() const override { return {}; }
  const Model& model() const override { return *model_; }
  std::int64_t training_samples() const override { return training_.size(); }
  std::int64_t test_samples() const override { return test_.size(); }
  std::span<float> weights() override {
    return {weights_.data(), static_cast<std::size_t>(weights_.size())};
  }
  std::span<float> figures() override {
    return {figures_.data(), static_cast<std::size_t>(figures_.size())};
  }
  void weights_written(const core::Stream& /*stream*/) override {}

  void gradients(std::span<const Batch> batches) override {
    compute_alone();
    for (const Batch& batch : batches) gradient(batch);
  }

  ClassifierScore score(std::span<const data::Pick> picks) override {
    compute_alone();
    const at::NoGradGuard no_gradient;
    Inputs inputs(test_, picks);
    Model::Pass pass{inputs.x(), parameters_, running_, false};
    model_->forward(pass);
    const at::Tensor labels = inputs.labels();
    const at::Tensor loss = at::cross_entropy_loss(pass.x, labels, {}, at::Reduction::Sum);
    return {loss.item<double>(), pass.x.argmax(1).eq(labels).sum().item<std::int64_t>()};
  }

 private:
  void gradient(const Batch& batch) {
    Inputs inputs(training_, batch.picks);
    core::AlignedArray<float> own_figures(figures_.size());
    const auto own = views(model_->figures(), own_figures.data());
    Model::Pass pass{inputs.x(), parameters_, own, true};
    model_->forward(pass);
    const at::Tensor loss = at::cross_entropy_loss(pass.x, inputs.labels());
    copy_flat(torch::autograd::grad({loss}, parameters_), batch.gradient.data());
    *batch.loss = loss.item<float>();
    if (!batch.keeps_figures) return;
    for (std::size_t i = 0; i < own.size(); ++i) running_[i].lerp_(own[i], kFigureShare);
  }

  std::unique_ptr<Model> model_;
  data::Samples training_;
  data::Samples test_;
  core::AlignedArray<float> weights_;
  core::AlignedArray<float> figures_;
  std::vector<at::Tensor> parameters_;
  std::vector<at::Tensor> running_;
};

}  // namespace

std::unique_ptr<Classifier> make_host_classifier(std::unique_ptr<Model> model,
                                                 data::Samples training, data::Samples test,
                                                 const Classifier::Options& options) {
  return std::make_unique<HostClassifier>(std::move(model), std::move(training), std::move(test),
                                          options);
}

}  // namespace train::models
