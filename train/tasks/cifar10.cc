#include "train/tasks/cifar10.h"

#include <utility>

#include "scalecom/core/error.h"
#include "scalecom/core/text.h"
#include "train/data/cifar10.h"
#include "train/models/resnet.h"
#include "train/tasks/classification.h"

namespace train::tasks::cifar10 {
namespace {

namespace core = scalecom::core;

constexpr const char* kAdvice =
    "; get the binary version of CIFAR-10, and give the folder that holds cifar-10-batches-bin "
    "with --data";

data::Cifar10 read(const Options& options) {
  if (options.data.empty()) {
    throw core::UsageError(core::concat("[data] the task cifar10 has no data of its own", kAdvice));
  }
  try {
    return data::read_cifar10(options.data);
  } catch (const core::UsageError& error) {
    throw core::UsageError(core::concat(error.what(), kAdvice));
  }
}

}  // namespace

Recipe recipe() {
  Recipe recipe;
  recipe.epochs = 20;
  recipe.batch = 32;
  recipe.learning_rate = 0.1;
  recipe.learning_rate_warmup = 0.2;
  return recipe;
}

std::unique_ptr<Task> make(const Options& options) {
  data::Cifar10 data = read(options);
  models::ResNetOptions network;
  network.batch = options.batch;
  return make_classification(models::make_resnet(network), std::move(data.training),
                             std::move(data.test), options);
}

}  // namespace train::tasks::cifar10
