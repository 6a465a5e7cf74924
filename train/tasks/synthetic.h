#pragma once

#include <memory>

#include "train/tasks/task.h"
#include "train/tasks/tasks.h"

namespace train::tasks::synthetic {

/// Gaussian clusters made from the seed, and a small network of three layers: for tests.
Recipe recipe(const Settings& settings);
/// core::UsageError where a data folder is given.
std::unique_ptr<Task> make(const Settings& settings, const Options& options);

}  // namespace train::tasks::synthetic
