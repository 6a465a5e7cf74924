#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "scalecom/core/device.h"
#include "train/task.h"

namespace train::tasks {

struct Options {
  std::filesystem::path data;  ///< a folder; empty for the task's own
  std::uint64_t seed = 0;
  std::int64_t batch = 1;  ///< a learner's mini-batch
  scalecom::core::Device device = {};
  int at_once = 1;  ///< mini-batches that a GPU works on at the same time
};

/// How a task is trained unless told otherwise.
struct Recipe {
  double epochs = 1;
  std::int64_t batch = 1;  ///< a learner's mini-batch
  /// Peak learning rate where learners * batch is kReferenceSamples; it grows with the square root.
  double learning_rate = 0.1;
  double learning_rate_warmup = 0.1;  ///< share of the steps
  double momentum = 0.9;
  double weight_decay = 5e-4;

  static constexpr double kReferenceSamples = 128;
};

/// The tasks that make() knows.
std::vector<std::string> names();

/// core::UsageError for an unknown name, with the list of those that are known.
Recipe recipe(const std::string& name);
std::unique_ptr<Task> make(const std::string& name, const Options& options);

}  // namespace train::tasks
