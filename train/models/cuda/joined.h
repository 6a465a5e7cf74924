#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/cuda/CUDAGraph.h>
#include <c10/cuda/CUDAStream.h>

#include <cstdint>
#include <mutex>
#include <span>
#include <utility>
#include <vector>

#include "scalecom/core/cuda/runtime.h"
#include "train/models/classifier.h"
#include "train/models/cuda/batches.h"
#include "train/models/cuda/working_weights.h"

namespace train::models::cuda {

/// What the mini-batches of several learners go through at once, in bf16: a stream and the graph
/// that computes on it.
class Joined {
 public:
  Joined(scalecom::core::Device device, const Model& model, WorkingWeights& weights,
         std::int64_t learners, std::int64_t batch);
  ~Joined();
  Joined(const Joined&) = delete;
  Joined& operator=(const Joined&) = delete;

  /// How many of the `learners` of a process should be joined: as many as fill the GPU, and the
  /// same number each time. 1 where none should be.
  static std::int64_t size(std::int64_t learners, std::int64_t batch);

  std::int64_t learners() const { return learners_; }
  /// Whether gradients() can take a batch like this.
  bool takes(const Batch& batch) const {
    return static_cast<std::int64_t>(batch.picks.size()) == batch_;
  }

  /// `stream` waits for all that was put here.
  void make_wait(const scalecom::core::Stream& stream) const { done_.make_wait(stream); }

  /// As many batches as learners, once the weights are `updated`. If one keeps its figures, the
  /// mean of all goes into `running`: it is there anyway, and less noisy than any.
  void gradients(const DeviceSamples& samples, std::span<const Batch> batches,
                 const scalecom::core::cuda::Event& updated, const at::Tensor& running);

 private:
  /// Each learner's loss and gradient, in the shapes of the model's tensors. Figures are written.
  std::pair<at::Tensor, std::vector<at::Tensor>> differentiate();
  void capture();

  const Model& model_;
  std::int64_t learners_;
  std::int64_t batch_;
  std::mutex mutex_;
  c10::cuda::CUDAStream native_;
  scalecom::core::Stream stream_;         // the same
  scalecom::core::cuda::Event received_;  // what a batch's own stream had before
  scalecom::core::cuda::Event done_;
  std::vector<at::Tensor> parameters_;
  at::Tensor figures_;  // of each learner's last batch
  std::vector<at::Tensor> figure_parts_;

  // What the graph takes and gives.
  at::Tensor inputs_;
  at::Tensor labels_;
  at::Tensor losses_;
  std::vector<at::Tensor> gradient_;
  at::cuda::CUDAGraph graph_;
  std::vector<Transposition> gather_;  // of each learner
};

}  // namespace train::models::cuda
