#include "train/models/cuda/joined.h"

#include <ATen/ATen.h>
#include <c10/cuda/CUDAGuard.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/variable.h>

#include <tuple>

#include "train/models/cuda/joined_size.h"
#include "train/models/cuda/torch_device.h"
#include "train/models/pass.h"

namespace train::models::cuda {
namespace {

namespace core = scalecom::core;

constexpr std::int64_t kMostSamples = 1280;  // at once; more take memory and gain nothing

}  // namespace

std::int64_t Joined::size(std::int64_t learners, std::int64_t batch) {
  return joined_size(learners, batch, kMostSamples);
}

Joined::Joined(core::Device device, const Model& model, WorkingWeights& weights,
               std::int64_t learners, std::int64_t batch)
    : model_(model),
      learners_(learners),
      batch_(batch),
      native_(c10::cuda::getStreamFromPool(false, static_cast<c10::DeviceIndex>(device.index))),
      stream_(core::Stream::wrap(device, native_.stream())),
      received_(device),
      done_(device),
      parameters_(weights.leaves(learners)) {
  const c10::cuda::CUDAStreamGuard guard(native_);
  figures_ = at::zeros({learners, model.figure_elements()}, on(device).dtype(at::kFloat));
  figure_parts_ = parts_of(model.figures(), figures_);
  const Shape& shape = model.input();
  inputs_ = at::zeros({learners * batch, shape.channels, shape.height, shape.width},
                      on(device).dtype(at::kFloat))
                .contiguous(at::MemoryFormat::ChannelsLast);
  labels_ = at::zeros({learners * batch}, on(device).dtype(at::kLong));
  capture();
}

Joined::~Joined() {
  try {
    native_.synchronize();
  } catch (...) {  // whoever was using it has been told
  }
}

std::pair<at::Tensor, std::vector<at::Tensor>> Joined::differentiate() {
  Model::Pass pass{inputs_.to(at::kBFloat16), parameters_, figure_parts_, true, learners_};
  model_.forward(pass);
  const at::Tensor losses = at::cross_entropy_loss(pass.x, labels_, {}, at::Reduction::None)
                                .view({learners_, batch_})
                                .mean(1);
  // No learner's loss depends on another's parameters, so the sum's gradient is that of each.
  return {losses.detach(), torch::autograd::grad({losses.sum()}, parameters_)};
}

void Joined::capture() {
  for (int i = 0; i < kWarmUps; ++i) differentiate();
  native_.synchronize();
  // Other threads may use the GPU meanwhile.
  graph_.capture_begin({0, 0}, cudaStreamCaptureModeThreadLocal);
  std::tie(losses_, gradient_) = differentiate();
  for (at::Tensor& part : gradient_) {
    part = part.dim() == 5 ? part.permute({0, 4, 1, 2, 3}).contiguous() : part.contiguous();
  }
  graph_.capture_end();

  for (std::int64_t learner = 0; learner < learners_; ++learner) {
    std::vector<at::Tensor> own;
    for (const at::Tensor& all : gradient_) own.push_back(all.select(0, learner));
    gather_.push_back(into_one_array(stream_.device(), own));
  }
}

void Joined::gradients(const DeviceSamples& samples, std::span<const Batch> batches,
                       const core::cuda::Event& updated, const at::Tensor& running) {
  const std::lock_guard lock(mutex_);
  const c10::cuda::CUDAStreamGuard guard(native_);
  std::vector<data::Pick> picks;
  for (const Batch& batch : batches) {
    picks.insert(picks.end(), batch.picks.begin(), batch.picks.end());
    received_.record(batch.stream);
    received_.make_wait(stream_);
  }
  updated.make_wait(stream_);
  samples.assemble(picks, inputs_.mutable_data_ptr<float>(),
                   labels_.mutable_data_ptr<std::int64_t>(), stream_);
  graph_.replay();
  for (std::size_t i = 0; i < batches.size(); ++i) {
    const Batch& batch = batches[i];
    gather_[i].run(batch.gradient.data(), stream_);
    core::cuda::copy(batch.loss, losses_.const_data_ptr<float>() + i, sizeof(float), stream_);
    if (batch.keeps_figures) running.lerp_(figures_.mean(0), kFigureShare);
  }
  done_.record(stream_);
  for (const Batch& batch : batches) done_.make_wait(batch.stream);
}

}  // namespace train::models::cuda
