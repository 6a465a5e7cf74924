#include "train/tasks/synthetic.h"

#include <cmath>
#include <numbers>
#include <utility>

#include "scalecom/core/error.h"
#include "scalecom/core/hash.h"
#include "scalecom/core/options.h"
#include "train/models/network.h"
#include "train/tasks/classification.h"

namespace train::tasks::synthetic {
namespace {

namespace core = scalecom::core;

constexpr std::int64_t kFeatures = 32;
constexpr std::int64_t kClasses = 10;
constexpr std::int64_t kTraining = 2048;
constexpr std::int64_t kTest = 512;
constexpr std::int64_t kHidden = 64;
// Clusters lie about sqrt(2) * kSpread apart in each feature, against a noise of 1: they overlap,
// so that there is something to learn.
constexpr float kSpread = 0.6F;

/// A number in (0, 1) for every (seed, index).
double uniform(std::uint64_t seed, std::uint64_t index) {
  return (static_cast<double>(core::combine(seed, index) >> 11) + 0.5) / 0x1p53;
}

float normal(std::uint64_t seed, std::uint64_t index) {
  const double radius = std::sqrt(-2 * std::log(uniform(seed, 2 * index)));
  return static_cast<float>(radius * std::cos(2 * std::numbers::pi * uniform(seed, 2 * index + 1)));
}

/// `first` keeps the samples of two sets with the same clusters apart.
data::Samples make_clusters(std::uint64_t seed, std::int64_t first, std::int64_t size) {
  const std::uint64_t centres = core::combine(seed, 0x63656e747265);
  const std::uint64_t places = core::combine(seed, 0x73616d706c65);
  data::Samples samples;
  samples.shape = {kFeatures};
  for (std::int64_t i = 0; i < size; ++i) {
    const std::int64_t label = i % kClasses;
    for (std::int64_t f = 0; f < kFeatures; ++f) {
      const auto centre = static_cast<std::uint64_t>(label * kFeatures + f);
      const auto place = static_cast<std::uint64_t>((first + i) * kFeatures + f);
      samples.floats.push_back(kSpread * normal(centres, centre) + normal(places, place));
    }
    samples.labels.push_back(static_cast<std::uint8_t>(label));
  }
  return samples;
}

}  // namespace

Recipe recipe(const Settings& settings) {
  core::OptionTable("synthetic").read(settings);
  Recipe recipe;
  recipe.epochs = 6;
  recipe.batch = 16;
  recipe.learning_rate = 0.05;
  return recipe;
}

std::unique_ptr<Task> make(const Settings& settings, const Options& options) {
  core::OptionTable("synthetic").read(settings);
  if (!options.data.empty()) {
    throw core::UsageError("[data] the task synthetic makes its data itself: leave out --data");
  }
  models::NetworkOptions network;
  network.input = {kFeatures};
  network.layers = {models::linear("fc1", kHidden), models::relu(), models::linear("fc2", kHidden),
                    models::relu(), models::linear("fc3", kClasses)};
  network.batch = options.batch;
  return make_classification(models::make_network(network),
                             make_clusters(options.seed, 0, kTraining),
                             make_clusters(options.seed, kTraining, kTest), options);
}

}  // namespace train::tasks::synthetic
