#include "train/models/cuda/classifier.h"

#include <ATen/ATen.h>
#include <ATen/cuda/CUDAGraph.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/grad_mode.h>
#include <torch/csrc/autograd/variable.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <mutex>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "scalecom/core/array.h"
#include "scalecom/core/cuda/runtime.h"
#include "scalecom/core/error.h"
#include "scalecom/core/text.h"
#include "train/models/cuda/batches.h"
#include "train/models/cuda/joined.h"
#include "train/models/cuda/torch_device.h"
#include "train/models/cuda/working_weights.h"
#include "train/models/pass.h"

namespace train::models::cuda {
namespace {

namespace core = scalecom::core;
using core::cuda::Event;

/// What batches go through, one after the other: a stream, a batch's arrays, and the graph that
/// computes with them. Several lanes work at the same time, with the same weights.
class Lane {
 public:
  /// Without a graph where batches of the usual size go elsewhere.
  Lane(core::Device device, const Model& model, WorkingWeights& weights, std::int64_t batch,
       bool has_graph)
      : model_(model),
        native_(c10::cuda::getStreamFromPool(false, static_cast<c10::DeviceIndex>(device.index))),
        stream_(core::Stream::wrap(device, native_.stream())),
        received_(device),
        done_(device),
        parameters_(weights.leaves()) {
    const c10::cuda::CUDAStreamGuard guard(native_);
    figures_ = at::zeros({model.figure_elements()}, on(device).dtype(at::kFloat));
    figure_parts_ = parts_of(model.figures(), figures_);
    inputs_ = make_inputs(batch);
    labels_ = at::zeros({batch}, on(device).dtype(at::kLong));
    if (has_graph) capture();
  }
  ~Lane() {
    try {
      native_.synchronize();
    } catch (...) {  // whoever was using it has been told
    }
  }
  Lane(const Lane&) = delete;
  Lane& operator=(const Lane&) = delete;

  /// `stream` waits for all that was put here.
  void make_wait(const core::Stream& stream) const { done_.make_wait(stream); }

  /// Once the weights are `updated`; the batch's figures go into `running` if they are kept.
  void gradient(const DeviceSamples& samples, const Batch& batch, const Event& updated,
                const at::Tensor& running) {
    const std::lock_guard lock(mutex_);
    const c10::cuda::CUDAStreamGuard guard(native_);
    received_.record(batch.stream);
    received_.make_wait(stream_);
    updated.make_wait(stream_);
    const bool usual = static_cast<std::int64_t>(batch.picks.size()) == labels_.size(0);
    const at::Tensor loss =
        usual && loss_.defined() ? replay(samples, batch) : compute(samples, batch);
    core::cuda::copy(batch.loss, loss.const_data_ptr<float>(), sizeof(float), stream_);
    if (batch.keeps_figures) running.lerp_(figures_, kFigureShare);
    done_.record(stream_);
    done_.make_wait(batch.stream);
  }

  ClassifierScore score(const DeviceSamples& samples, std::span<const data::Pick> picks,
                        const Event& updated, std::span<const at::Tensor> running) {
    const std::lock_guard lock(mutex_);
    const c10::cuda::CUDAStreamGuard guard(native_);
    const at::NoGradGuard no_gradient;
    updated.make_wait(stream_);
    const auto [inputs, labels] = assemble(samples, picks);
    Model::Pass pass{inputs, parameters_, running, false};
    model_.forward(pass);
    const at::Tensor loss = at::cross_entropy_loss(pass.x, labels, {}, at::Reduction::Sum);
    const at::Tensor hits = pass.x.argmax(1).eq(labels).sum();
    done_.record(stream_);
    return {loss.item<double>(), hits.item<std::int64_t>()};
  }

 private:
  /// The loss and its gradient, in the shapes of the model's tensors. The batch's figures are
  /// written.
  std::pair<at::Tensor, std::vector<at::Tensor>> differentiate(const at::Tensor& inputs,
                                                               const at::Tensor& labels) {
    Model::Pass pass{inputs, parameters_, figure_parts_, true};
    model_.forward(pass);
    const at::Tensor loss = at::cross_entropy_loss(pass.x, labels);
    return {loss.detach(), torch::autograd::grad({loss}, parameters_)};
  }

  void capture() {
    for (int i = 0; i < kWarmUps; ++i) differentiate(inputs_, labels_);
    native_.synchronize();
    // Other threads may use the GPU meanwhile.
    graph_.capture_begin({0, 0}, cudaStreamCaptureModeThreadLocal);
    std::tie(loss_, gradient_) = differentiate(inputs_, labels_);
    for (at::Tensor& part : gradient_) {
      part = part.dim() == 4 ? part.permute({3, 0, 1, 2}).contiguous() : part.contiguous();
    }
    graph_.capture_end();

    gather_ = into_one_array(stream_.device(), gradient_);
  }

  /// Both put the gradient into its place and return the loss: a batch of the usual size by the
  /// graph, others without.
  at::Tensor replay(const DeviceSamples& samples, const Batch& batch) {
    samples.assemble(batch.picks, inputs_.mutable_data_ptr<float>(),
                     labels_.mutable_data_ptr<std::int64_t>(), stream_);
    graph_.replay();
    gather_.run(batch.gradient.data(), stream_);
    return loss_;
  }
  at::Tensor compute(const DeviceSamples& samples, const Batch& batch) {
    const auto [inputs, labels] = assemble(samples, batch.picks);
    const auto [loss, gradient] = differentiate(inputs, labels);
    std::vector<at::Tensor> parts;
    for (const at::Tensor& part : gradient) parts.push_back(part.contiguous().flatten());
    const at::Tensor flat = at::cat(parts);
    core::cuda::copy(batch.gradient.data(), flat.const_data_ptr<float>(),
                     static_cast<std::int64_t>(batch.gradient.size_bytes()), stream_);
    return loss;
  }

  at::Tensor make_inputs(std::int64_t samples) const {
    const Shape& shape = model_.input();
    return at::zeros({samples, shape.channels, shape.height, shape.width},
                     on(stream_.device()).dtype(at::kFloat))
        .contiguous(at::MemoryFormat::ChannelsLast);
  }
  std::pair<at::Tensor, at::Tensor> assemble(const DeviceSamples& samples,
                                             std::span<const data::Pick> picks) const {
    const auto count = static_cast<std::int64_t>(picks.size());
    const at::Tensor inputs = make_inputs(count);
    const at::Tensor labels = at::empty({count}, labels_.options());
    samples.assemble(picks, inputs.mutable_data_ptr<float>(),
                     labels.mutable_data_ptr<std::int64_t>(), stream_);
    return {inputs, labels};
  }

  const Model& model_;
  std::mutex mutex_;
  c10::cuda::CUDAStream native_;
  core::Stream stream_;  // the same
  Event received_;       // what the batch's own stream had before
  Event done_;
  std::vector<at::Tensor> parameters_;
  at::Tensor figures_;  // of the last batch
  std::vector<at::Tensor> figure_parts_;

  // What the graph takes and gives.
  at::Tensor inputs_;
  at::Tensor labels_;
  at::Tensor loss_;
  std::vector<at::Tensor> gradient_;
  at::cuda::CUDAGraph graph_;
  Transposition gather_;
};

class DeviceClassifier final : public Classifier {
 public:
  DeviceClassifier(core::Device device, std::unique_ptr<Model> model, const data::Samples& training,
                   const data::Samples& test, const Options& options)
      : device_(device),
        model_(std::move(model)),
        training_(device, training),
        test_(device, test),
        weights_(device, model_->elements()),
        figures_(device, model_->figure_elements()),
        working_(device, model_->tensors(), weights_.data()),
        updated_(device) {
    be_deterministic();
    initialise(options.seed);
    running_ = view(device, figures_.data(), {figures_.size()}, {1});
    running_parts_ = parts_of(model_->figures(), running_);
    const std::int64_t joined =
        model_->takes_learners() ? Joined::size(options.joined, options.batch) : 1;
    if (joined > 1) {
      joined_ = std::make_unique<Joined>(device, *model_, working_, joined, options.batch);
    }
    for (int i = 0; i < options.at_once; ++i) {
      lanes_.push_back(
          std::make_unique<Lane>(device, *model_, working_, options.batch, joined_ == nullptr));
    }
  }

  core::Device device() const override { return device_; }
  const Model& model() const override { return *model_; }
  std::int64_t training_samples() const override { return training_.size(); }
  std::int64_t test_samples() const override { return test_.size(); }
  std::span<float> weights() override { return weights_.span(); }
  std::span<float> figures() override { return figures_.span(); }

  void weights_written(const core::Stream& stream) override {
    for (const auto& lane : lanes_) lane->make_wait(stream);
    if (joined_) joined_->make_wait(stream);
    working_.refresh(stream);
    updated_.record(stream);
  }

  bool joins() const override { return joined_ != nullptr; }
  void gradients(std::span<const Batch> batches) override {
    translated(device_, [&] {
      while (can_join(batches)) {
        const auto some = batches.first(static_cast<std::size_t>(joined_->learners()));
        joined_->gradients(training_, some, updated_, running_);
        batches = batches.subspan(some.size());
      }
      for (const Batch& batch : batches) next_lane().gradient(training_, batch, updated_, running_);
    });
  }
  ClassifierScore score(std::span<const data::Pick> picks) override {
    return translated(device_,
                      [&] { return next_lane().score(test_, picks, updated_, running_parts_); });
  }

 private:
  void initialise(std::uint64_t seed) {
    const core::Stream stream = core::Stream::cuda(device_);
    const auto upload = [&](std::span<float> to, const std::vector<float>& values) {
      core::cuda::copy(to.data(), values.data(), static_cast<std::int64_t>(to.size_bytes()),
                       stream);
    };
    std::vector<float> values(weights_.span().size());
    model_->initialise(seed, values);
    std::vector<float> figures(figures_.span().size());
    model_->initialise_figures(figures);
    upload(weights(), values);
    upload(this->figures(), figures);
    weights_written(stream);
    core::cuda::synchronize(stream);
  }

  bool can_join(std::span<const Batch> batches) const {
    if (!joined_ || static_cast<std::int64_t>(batches.size()) < joined_->learners()) return false;
    const auto some = batches.first(static_cast<std::size_t>(joined_->learners()));
    return std::ranges::all_of(some, [&](const Batch& batch) { return joined_->takes(batch); });
  }

  /// In turn, so that all of them have as much to do.
  Lane& next_lane() { return *lanes_[next_++ % lanes_.size()]; }

  core::Device device_;
  std::unique_ptr<Model> model_;
  DeviceSamples training_;
  DeviceSamples test_;
  core::Array<float> weights_;
  core::Array<float> figures_;
  WorkingWeights working_;
  Event updated_;  // the weights that are computed with
  at::Tensor running_;
  std::vector<at::Tensor> running_parts_;
  std::unique_ptr<Joined> joined_;  // or none
  std::vector<std::unique_ptr<Lane>> lanes_;
  std::atomic<std::size_t> next_ = 0;
};

}  // namespace

std::unique_ptr<Classifier> make_classifier(core::Device device, std::unique_ptr<Model> model,
                                            const data::Samples& training,
                                            const data::Samples& test,
                                            const Classifier::Options& options) {
  return translated(device, [&]() -> std::unique_ptr<Classifier> {
    return std::make_unique<DeviceClassifier>(device, std::move(model), training, test, options);
  });
}

}  // namespace train::models::cuda
