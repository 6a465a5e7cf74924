#include "train/tasks/classification.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "scalecom/core/aligned_array.h"
#include "scalecom/core/hash.h"

namespace train::tasks {
namespace {

namespace core = scalecom::core;

constexpr std::int64_t kTestBatch = 250;

/// What the network takes at once. Aligned, so that equal batches give equal bits.
struct Batch {
  Batch(std::size_t samples, std::int64_t width)
      : inputs(static_cast<std::int64_t>(samples) * width), labels(samples), width(width) {}

  std::span<float> input(std::size_t i) {
    return {inputs.data() + static_cast<std::int64_t>(i) * width, static_cast<std::size_t>(width)};
  }
  std::span<const float> all() const {
    return {inputs.data(), static_cast<std::size_t>(inputs.size())};
  }

  core::AlignedArray<float> inputs;
  std::vector<std::int64_t> labels;
  std::int64_t width;
};

class Classification final : public Task {
 public:
  Classification(const models::Network::Options& network, std::unique_ptr<Examples> training,
                 std::unique_ptr<Examples> test)
      : seed_(network.seed),
        network_(network),
        training_(std::move(training)),
        test_(std::move(test)) {}

  std::string metric() const override { return "test accuracy (%)"; }
  double value(const Score& all) const override {
    return 100 * all.hits / static_cast<double>(all.samples);
  }
  std::int64_t samples() const override { return training_->size(); }
  std::int64_t test_samples() const override { return test_->size(); }
  std::span<const scalecom::layout::Tensor> tensors() const override { return network_.tensors(); }
  std::span<float> weights() override { return network_.weights(); }

  void gradients(std::span<Shard> shards) const override {
    for (Shard& shard : shards) {
      Batch batch(shard.samples.size(), network_.input().elements());
      const std::uint64_t noise =
          core::combine(core::combine(seed_, static_cast<std::uint64_t>(shard.learner)),
                        static_cast<std::uint64_t>(shard.step));
      for (std::size_t i = 0; i < shard.samples.size(); ++i) {
        training_->copy_varied(shard.samples[i], core::combine(noise, i), batch.input(i));
        batch.labels[i] = training_->label(shard.samples[i]);
      }
      shard.loss = network_.gradient(batch.all(), batch.labels, shard.gradient);
    }
  }

  Score score(std::int64_t begin, std::int64_t end) const override {
    Score sum{0, 0, end - begin};
    for (; begin < end; begin += kTestBatch) {
      const auto count = static_cast<std::size_t>(std::min(kTestBatch, end - begin));
      Batch batch(count, network_.input().elements());
      for (std::size_t i = 0; i < count; ++i) {
        const std::int64_t sample = begin + static_cast<std::int64_t>(i);
        test_->copy(sample, batch.input(i));
        batch.labels[i] = test_->label(sample);
      }
      const models::Network::Score part = network_.score(batch.all(), batch.labels);
      sum.loss += part.loss;
      sum.hits += static_cast<double>(part.correct);
    }
    return sum;
  }

 private:
  std::uint64_t seed_;
  models::Network network_;
  std::unique_ptr<Examples> training_;
  std::unique_ptr<Examples> test_;
};

}  // namespace

std::unique_ptr<Task> make_classification(const models::Network::Options& network,
                                          std::unique_ptr<Examples> training,
                                          std::unique_ptr<Examples> test) {
  return std::make_unique<Classification>(network, std::move(training), std::move(test));
}

}  // namespace train::tasks
