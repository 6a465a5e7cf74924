#pragma once

#include <memory>

#include "train/tasks/task.h"
#include "train/tasks/tasks.h"

namespace train::tasks::fsdd {

/// Strings of spoken digits, joined from recordings of one speaker each time anew, and LSTMs in
/// both directions with CTC. Every recording begins one string an epoch. The metric is the word
/// error rate on strings of the recordings that are kept for testing, which are always the same.
///
/// Settings: `size`, full (four layers) or small (one, on short strings, for a CPU); `decode`, beam
/// or greedy.
Recipe recipe(const Settings& settings);

/// core::UsageError, saying what is needed, where the data is missing or not what it should be.
std::unique_ptr<Task> make(const Settings& settings, const Options& options);

}  // namespace train::tasks::fsdd
