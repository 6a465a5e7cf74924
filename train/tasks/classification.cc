#include "train/tasks/classification.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "scalecom/core/hash.h"
#include "train/models/classifier.h"

namespace train::tasks {
namespace {

namespace core = scalecom::core;

// A GPU is not busy with less.
constexpr std::int64_t kTestBatch = 250;
constexpr std::int64_t kDeviceTestBatch = 500;

class Classification final : public Task {
 public:
  Classification(std::unique_ptr<models::Model> model, data::Samples training, data::Samples test,
                 const Options& options)
      : seed_(options.seed),
        variation_(training.variation),
        classifier_(models::make_classifier(
            options.device, std::move(model), std::move(training), std::move(test),
            {options.seed, options.batch, options.at_once, options.joined})) {}

  std::string metric() const override { return "test accuracy (%)"; }
  double value(const Score& all) const override {
    return 100 * all.hits / static_cast<double>(all.samples);
  }
  std::int64_t samples() const override { return classifier_->training_samples(); }
  std::int64_t test_samples() const override { return classifier_->test_samples(); }

  core::Device device() const override { return classifier_->device(); }
  std::span<const scalecom::layout::Tensor> tensors() const override {
    return classifier_->model().tensors();
  }
  std::span<float> weights() override { return classifier_->weights(); }
  std::span<const scalecom::layout::Tensor> figures() const override {
    return classifier_->model().figures();
  }
  std::span<float> figure_values() override { return classifier_->figures(); }
  void weights_written(const core::Stream& stream) override {
    classifier_->weights_written(stream);
  }

  bool joins_learners() const override { return classifier_->joins(); }
  void gradients(std::span<const Shard> shards) const override {
    std::vector<std::vector<data::Pick>> picks;
    std::vector<models::Batch> batches;
    picks.reserve(shards.size());
    for (const Shard& shard : shards) {
      picks.push_back(pick(shard));
      batches.push_back(
          {picks.back(), shard.gradient, shard.loss, shard.learner == 0, shard.stream});
    }
    classifier_->gradients(batches);
  }

  Score score(std::int64_t begin, std::int64_t end) const override {
    const std::int64_t most = device().is_cuda() ? kDeviceTestBatch : kTestBatch;
    Score sum{0, 0, end - begin};
    for (; begin < end; begin += most) {
      std::vector<data::Pick> picks(static_cast<std::size_t>(std::min(most, end - begin)));
      for (std::size_t i = 0; i < picks.size(); ++i) {
        picks[i].sample = static_cast<std::int32_t>(begin) + static_cast<std::int32_t>(i);
      }
      const models::ClassifierScore part = classifier_->score(picks);
      sum.loss += part.loss;
      sum.hits += static_cast<double>(part.correct);
    }
    return sum;
  }

 private:
  /// The shard's samples, each varied in its own way.
  std::vector<data::Pick> pick(const Shard& shard) const {
    const std::uint64_t noise =
        core::combine(core::combine(seed_, static_cast<std::uint64_t>(shard.learner)),
                      static_cast<std::uint64_t>(shard.step));
    std::vector<data::Pick> picks(shard.samples.size());
    for (std::size_t i = 0; i < picks.size(); ++i) {
      picks[i] = data::vary(variation_, shard.samples[i], core::combine(noise, i));
    }
    return picks;
  }

  std::uint64_t seed_;
  data::Variation variation_;
  std::unique_ptr<models::Classifier> classifier_;
};

}  // namespace

std::unique_ptr<Task> make_classification(std::unique_ptr<models::Model> model,
                                          data::Samples training, data::Samples test,
                                          const Options& options) {
  return std::make_unique<Classification>(std::move(model), std::move(training), std::move(test),
                                          options);
}

}  // namespace train::tasks
