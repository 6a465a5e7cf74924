#pragma once

#include <functional>
#include <string>
#include <vector>

#include "train/tasks/task.h"

namespace train {

/// A task without a network: its gradient is what the samples, the learner and the weights make of
/// one line, and `on_gradient` is called within.
class LineTask final : public tasks::Task {
 public:
  std::function<void(const tasks::Shard&)> on_gradient = [](const tasks::Shard&) {};
  /// If there is one, learners are joined, and it is told of how many each time.
  std::function<void(std::size_t)> on_joined;
  int times_written = 0;

  std::string metric() const override { return "sum"; }
  double value(const tasks::Score& all) const override { return all.hits; }
  std::int64_t samples() const override { return 64; }
  std::int64_t test_samples() const override { return 10; }
  std::span<const scalecom::layout::Tensor> tensors() const override { return tensors_; }
  std::span<float> weights() override { return weights_; }
  std::span<const scalecom::layout::Tensor> figures() const override { return figures_; }
  std::span<float> figure_values() override { return figure_values_; }

  void weights_written(const scalecom::core::Stream& /*stream*/) override { ++times_written; }

  bool joins_learners() const override { return on_joined != nullptr; }
  void gradients(std::span<const tasks::Shard> shards) const override {
    if (on_joined) on_joined(shards.size());
    for (const tasks::Shard& shard : shards) {
      on_gradient(shard);
      *shard.loss = weights_[0];
      for (std::size_t i = 0; i < shard.gradient.size(); ++i) {
        shard.gradient[i] = static_cast<float>(shard.samples[0]) + 0.5F * weights_[i];
      }
    }
  }
  tasks::Score score(std::int64_t begin, std::int64_t end) const override {
    return {0, static_cast<double>(end - begin), end - begin};
  }

 private:
  std::vector<scalecom::layout::Tensor> tensors_{{"a", {2, 3}}, {"b", {2}}};
  std::vector<float> weights_ = std::vector<float>(8, 1);
  std::vector<scalecom::layout::Tensor> figures_{{"n.mean", {2}}, {"n.variance", {2}}};
  std::vector<float> figure_values_ = std::vector<float>(4, 1);
};

}  // namespace train
