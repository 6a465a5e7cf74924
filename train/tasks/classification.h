#pragma once

#include <memory>

#include "train/models/model.h"
#include "train/tasks/task.h"
#include "train/tasks/tasks.h"

namespace train::tasks {

/// The task of telling classes apart; its metric is the share of the test set that is told right,
/// in percent.
std::unique_ptr<Task> make_classification(std::unique_ptr<models::Model> model,
                                          data::Samples training, data::Samples test,
                                          const Options& options);

}  // namespace train::tasks
