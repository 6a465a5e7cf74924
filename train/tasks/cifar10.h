#pragma once

#include <memory>

#include "train/tasks/task.h"
#include "train/tasks/tasks.h"

namespace train::tasks::cifar10 {

/// Small colour pictures of ten kinds, 50,000 to train with and 10,000 to test. The setting `model`
/// says what learns them: resnet18, unless told otherwise, resnet34, mobilenetv2, or resnet8, which
/// a CPU can train. In training a picture is moved by up to four places and mirrored half of the
/// time.
Recipe recipe(const Settings& settings);

/// core::UsageError, saying what is needed, where the data is missing or not what it should be.
std::unique_ptr<Task> make(const Settings& settings, const Options& options);

}  // namespace train::tasks::cifar10
