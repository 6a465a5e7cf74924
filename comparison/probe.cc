#include "comparison/probe.h"

#include "scalecom/core/thread_pool.h"
#include "train/data/order.h"
#include "train/tasks/tasks.h"

namespace comparison {

Probe::Probe(const train::runs::Config& config)
    : config_(config),
      replica_(train::tasks::make(config.task, config.task_options()), config,
               scalecom::core::pool_threads()) {
  for (const auto& tensor : tensors()) elements_ += tensor.elements();
}

void Probe::gradient(int ranks, int rank, std::int64_t step, std::span<float> gradient) {
  const train::data::Order order(config_.seed, training_samples(), ranks, config_.batch);
  std::vector<std::int64_t> samples(static_cast<std::size_t>(config_.batch));
  order.batch(rank, step, samples);
  float loss = 0;
  train::tasks::Shard shard{rank, step, samples, gradient, &loss};
  replica_.gradients({&shard, 1});
}

}  // namespace comparison
