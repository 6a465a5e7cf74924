#pragma once

#include <memory>

#include "train/tasks/task.h"
#include "train/tasks/tasks.h"

namespace train::tasks::fashion_mnist {

/// Pictures of clothes, 28 x 28 grey values, ten kinds: 60,000 to train with, 10,000 to test.
Recipe recipe(const Settings& settings);

/// Reads the four IDX files, gzipped or not, that Debian's package dataset-fashion-mnist installs.
/// core::UsageError, saying how to get them, where one is missing or not what it should be.
std::unique_ptr<Task> make(const Settings& settings, const Options& options);

}  // namespace train::tasks::fashion_mnist
