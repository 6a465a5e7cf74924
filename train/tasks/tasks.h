#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "scalecom/core/device.h"
#include "train/optimizers/optimizer.h"
#include "train/tasks/task.h"

namespace train::tasks {

/// What stands after a task's name: "cifar10,model=resnet34" has one.
using Settings = std::vector<std::pair<std::string, std::string>>;

struct Options {
  std::filesystem::path data;  ///< a folder; empty for the task's own
  std::uint64_t seed = 0;
  std::int64_t batch = 1;  ///< a learner's mini-batch
  scalecom::core::Device device = {};
  int at_once = 1;  ///< mini-batches that a GPU works on at the same time
  int joined = 1;   ///< learners whose mini-batches a GPU may join
};

/// How a task is trained unless told otherwise.
struct Recipe {
  double epochs = 1;
  std::int64_t batch = 1;  ///< a learner's mini-batch
  /// Peak learning rate where learners * batch is kReferenceSamples; it grows with the square root.
  double learning_rate = 0.1;
  double learning_rate_warmup = 0.1;  ///< share of the steps
  optimizers::Optimizer::Kind optimizer = optimizers::Optimizer::Kind::kSgd;
  double momentum = 0.9;
  double weight_decay = 5e-4;
  /// What the task is judged by is not what is measured during training, and scripts/score says it.
  bool scored_apart = false;

  static constexpr double kReferenceSamples = 128;
};

/// The tasks that make() knows.
std::vector<std::string> names();

/// A task is asked for by its name, with settings where it has some: "cifar10,model=resnet34".
/// core::UsageError for an unknown name or setting, with the list of those that are known.
Recipe recipe(const std::string& spec);
std::unique_ptr<Task> make(const std::string& spec, const Options& options);

}  // namespace train::tasks
