#include "train/loop/replica.h"

#include <utility>

namespace train::loop {

/// Held while computing.
class Replica::Seat {
 public:
  explicit Seat(Replica& replica) : replica_(replica) {
    std::unique_lock lock(replica_.mutex_);
    replica_.freed_.wait(lock, [this] { return replica_.free_ > 0; });
    --replica_.free_;
  }
  ~Seat() {
    {
      const std::lock_guard lock(replica_.mutex_);
      ++replica_.free_;
    }
    replica_.freed_.notify_one();
  }
  Seat(const Seat&) = delete;
  Seat& operator=(const Seat&) = delete;

 private:
  Replica& replica_;
};

Replica::Replica(std::unique_ptr<tasks::Task> task, const runs::Config& config, int seats)
    : task_(std::move(task)),
      optimizer_(optimizers::make_optimizer(task_->tensors(), config.optimizer_options(),
                                            task_->device())),
      schedule_(config.schedule()),
      free_(seats) {}

void Replica::gradients(std::span<const tasks::Shard> shards) {
  const Seat seat(*this);
  task_->gradients(shards);
}

tasks::Score Replica::score(std::int64_t begin, std::int64_t end) {
  const Seat seat(*this);
  return task_->score(begin, end);
}

std::vector<tasks::Transcript> Replica::transcripts(std::int64_t begin, std::int64_t end) {
  const Seat seat(*this);
  return task_->transcripts(begin, end);
}

void Replica::update(std::span<const float> mean_gradient, std::int64_t step,
                     const scalecom::core::Stream& stream) {
  optimizer_->step(task_->weights(), mean_gradient, schedule_.rate(step), step, stream);
  task_->weights_written(stream);
}

}  // namespace train::loop
