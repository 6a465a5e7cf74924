#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "train/runs/config.h"
#include "train/tasks/task.h"

namespace train::loop {

/// A process's one copy of the model. Its weights are lent to as many learners at once as there are
/// seats, each of whom computes alone, so that the bits do not depend on how many there are; a task
/// that joins learners is asked for all of them in one call instead. All calls may come from any
/// thread.
class Replica {
 public:
  Replica(std::unique_ptr<tasks::Task> task, const runs::Config& config, int seats);

  const tasks::Task& task() const { return *task_; }

  void gradients(std::span<const tasks::Shard> shards);
  tasks::Score score(std::int64_t begin, std::int64_t end);
  std::vector<tasks::Transcript> transcripts(std::int64_t begin, std::int64_t end);

  /// The optimizer's step `step` with the mean gradient, in order on `stream`. Every learner has
  /// asked for its gradient of this step, and none asks for the next before it returns.
  void update(std::span<const float> mean_gradient, std::int64_t step,
              const scalecom::core::Stream& stream = {});

  /// The model and the optimizer, on the task's device, for checkpoints: between steps only.
  std::span<float> weights() { return task_->weights(); }
  std::vector<optimizers::Optimizer::State> states() { return optimizer_->states(); }
  std::span<float> figures() { return task_->figure_values(); }
  /// After writing any of them, in order on `stream`.
  void written(const scalecom::core::Stream& stream) { task_->weights_written(stream); }

 private:
  class Seat;

  std::unique_ptr<tasks::Task> task_;
  std::unique_ptr<optimizers::Optimizer> optimizer_;
  optimizers::Schedule schedule_;
  std::mutex mutex_;
  std::condition_variable freed_;
  int free_;
};

}  // namespace train::loop
