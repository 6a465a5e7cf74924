#include "train/tasks/cifar10.h"

#include <utility>

#include "scalecom/core/error.h"
#include "scalecom/core/options.h"
#include "scalecom/core/text.h"
#include "train/data/cifar10.h"
#include "train/models/mobilenet.h"
#include "train/models/resnet.h"
#include "train/tasks/classification.h"

namespace train::tasks::cifar10 {
namespace {

namespace core = scalecom::core;

constexpr const char* kAdvice =
    "; get the binary version of CIFAR-10 (www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz), "
    "unpack "
    "it with tar xzf, and give the folder that holds cifar-10-batches-bin with --data";

enum Network : int { kResNet18, kResNet34, kMobileNetV2, kResNet8 };

struct Choice {
  int network = kResNet18;
  /// Pictures of the training set that are scored instead of the test set: for choosing a recipe.
  std::int64_t held_out = 0;
};

Choice read(const Settings& settings) {
  Choice choice;
  core::OptionTable table("cifar10");
  table.choice("model", &choice.network, {"resnet18", "resnet34", "mobilenetv2", "resnet8"});
  table.integer("held_out", &choice.held_out, 0);
  table.read(settings);
  return choice;
}

std::unique_ptr<models::Model> make_model(int network, std::int64_t batch) {
  if (network == kMobileNetV2) {
    models::MobileNetOptions options;
    options.batch = batch;
    return models::make_mobilenet(options);
  }
  models::ResNetOptions options;
  options.batch = batch;
  if (network == kResNet34) options.blocks = {3, 4, 6, 3};
  if (network == kResNet8) {
    options.widths = {16, 32, 64};
    options.blocks = {1, 1, 1};
  }
  return models::make_resnet(options);
}

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

Recipe recipe(const Settings& settings) {
  const Choice choice = read(settings);
  Recipe recipe;
  recipe.epochs = choice.network == kResNet8 ? 3 : 20;
  recipe.batch = 32;
  recipe.learning_rate = 0.1;
  recipe.learning_rate_warmup = 0.2;
  return recipe;
}

std::unique_ptr<Task> make(const Settings& settings, const Options& options) {
  const Choice choice = read(settings);
  auto model = make_model(choice.network, options.batch);
  data::Cifar10 data = read(options);
  if (choice.held_out >= data.training.size()) {
    throw core::UsageError(core::concat("[cifar10] held_out=", choice.held_out, " of ",
                                        data.training.size(),
                                        " pictures leaves none to train with; hold out fewer"));
  }
  if (choice.held_out > 0) data.test = data::hold_out(data.training, choice.held_out);
  return make_classification(std::move(model), std::move(data.training), std::move(data.test),
                             options);
}

}  // namespace train::tasks::cifar10
