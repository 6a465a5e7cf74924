#pragma once

#include <memory>

#include "train/tasks/task.h"
#include "train/tasks/tasks.h"

namespace train::tasks::multi30k {

/// English sentences about pictures into German, by a Transformer. The metric is how many of the
/// validation set's tokens are the most probable, given those before. A complete run leaves the
/// test set's translations, found by beam search, to be scored by sacrebleu.
///
/// The setting `size` is full, or small, for a CPU.
Recipe recipe(const Settings& settings);

/// Reads train, val and test_2016_flickr (or test), each as NAME.en and NAME.de, from the folder or
/// from multi30k in it. core::UsageError, saying what is needed, where the data is missing or not
/// what it should be.
std::unique_ptr<Task> make(const Settings& settings, const Options& options);

}  // namespace train::tasks::multi30k
