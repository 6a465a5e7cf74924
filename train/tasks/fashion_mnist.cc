#include "train/tasks/fashion_mnist.h"

#include <algorithm>
#include <string>
#include <utility>

#include "scalecom/core/error.h"
#include "scalecom/core/options.h"
#include "scalecom/core/text.h"
#include "train/data/idx.h"
#include "train/models/network.h"
#include "train/tasks/classification.h"

namespace train::tasks::fashion_mnist {
namespace {

namespace core = scalecom::core;
namespace fs = std::filesystem;

constexpr const char* kInstalled = "/usr/share/datasets/fashion-mnist";
constexpr std::int64_t kSide = 28;
constexpr int kClasses = 10;
// Mean and deviation of the training set's grey values, of which white is 1.
constexpr float kMean = 0.2860F;
constexpr float kDeviation = 0.3530F;

/// The file of this name, gzipped or not.
fs::path find(const fs::path& folder, const std::string& name) {
  const fs::path plain = folder / name;
  return fs::exists(plain) ? plain : folder / (name + ".gz");
}

data::Samples read(const fs::path& folder, const std::string& part) {
  const fs::path images_path = find(folder, part + "-images-idx3-ubyte");
  const fs::path labels_path = find(folder, part + "-labels-idx1-ubyte");
  data::ByteArray images = data::read_idx(images_path, 3);
  data::ByteArray labels = data::read_idx(labels_path, 1);
  if (images.shape[1] != kSide || images.shape[2] != kSide) {
    throw core::UsageError(core::concat("[data] ", images_path.string(), " holds pictures of ",
                                        images.shape[1], " x ", images.shape[2],
                                        "; 28 x 28 are expected"));
  }
  if (images.shape[0] != labels.shape[0]) {
    throw core::UsageError(core::concat("[data] ", labels_path.string(), " has ", labels.shape[0],
                                        " labels for ", images.shape[0], " pictures"));
  }
  if (*std::max_element(labels.data.begin(), labels.data.end()) >= kClasses) {
    throw core::UsageError(core::concat("[data] ", labels_path.string(),
                                        " has a label over 9; Fashion-MNIST has ten kinds"));
  }
  data::Samples samples;
  samples.shape = {1, kSide, kSide};
  samples.bytes = std::move(images.data);
  data::append_scale(kMean, kDeviation, samples.scale);
  samples.labels = std::move(labels.data);
  return samples;
}

}  // namespace

Recipe recipe(const Settings& settings) {
  core::OptionTable("fashion-mnist").read(settings);
  Recipe recipe;
  // Small mini-batches, for many steps: what compression loses, it loses in runs of few steps.
  recipe.epochs = 10;
  recipe.batch = 16;
  recipe.learning_rate = 0.07;
  recipe.learning_rate_warmup = 0.25;
  return recipe;
}

std::unique_ptr<Task> make(const Settings& settings, const Options& options) {
  core::OptionTable("fashion-mnist").read(settings);
  models::NetworkOptions network;
  network.input = {1, kSide, kSide};
  // The first layer and the biases, which travel dense, are a thousandth of the weights.
  network.layers = {models::convolution("conv1", 16, 3),
                    models::relu_pool(),
                    models::convolution("conv2", 32, 3),
                    models::relu_pool(),
                    models::linear("fc1", 256),
                    models::relu(),
                    models::linear("fc2", 10)};
  network.batch = options.batch;

  const fs::path folder = options.data.empty() ? fs::path(kInstalled) : options.data;
  data::Samples training;
  data::Samples test;
  try {
    training = read(folder, "train");
    test = read(folder, "t10k");
  } catch (const core::UsageError& error) {
    throw core::UsageError(core::concat(
        error.what(), "; get the files with 'apt-get install dataset-fashion-mnist', or give the ",
        "folder that has them with --data"));
  }
  training.variation.mirrored = true;
  return make_classification(models::make_network(network), std::move(training), std::move(test),
                             options);
}

}  // namespace train::tasks::fashion_mnist
