#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "scalecom/core/device.h"
#include "scalecom/core/stream.h"
#include "scalecom/layout/layout.h"

namespace train::tasks {

/// One learner's part of a step.
struct Shard {
  int learner = 0;
  std::int64_t step = 0;
  std::span<const std::int64_t> samples;  ///< of the training set
  /// Out, on the task's device and in order on `stream`: the gradient of the mean loss over the
  /// samples, and that mean.
  std::span<float> gradient;
  float* loss = nullptr;
  scalecom::core::Stream stream = {};
};

/// How well some samples of the test set are done: sums over them.
struct Score {
  double loss = 0;
  double hits = 0;  ///< what the metric counts
  std::int64_t samples = 0;
};

/// What a test sample says, and what the model makes of it.
struct Transcript {
  std::string reference;
  std::string hypothesis;
};

/// What is trained: one replica of a model, its data and its loss. Every learner of a process uses
/// the same replica. gradients() and score() may be called by many threads at once, each with its
/// own arguments; what comes out depends on the weights and the arguments alone, but for figures().
/// Flat arrays follow the order of tensors() and lie on device().
class Task {
 public:
  virtual ~Task() = default;

  /// What is measured, for people: "test accuracy (%)", and its value for all of the test set.
  virtual std::string metric() const = 0;
  virtual double value(const Score& all) const = 0;
  /// The sizes of the training and the test set.
  virtual std::int64_t samples() const = 0;
  virtual std::int64_t test_samples() const = 0;

  virtual scalecom::core::Device device() const { return {}; }
  virtual std::span<const scalecom::layout::Tensor> tensors() const = 0;
  /// What gradients() and score() compute with; written only while nobody calls them. Who has
  /// written them says so, in order on `stream`, before the next call.
  virtual std::span<float> weights() = 0;
  virtual void weights_written(const scalecom::core::Stream& stream) { static_cast<void>(stream); }
  /// What score() needs besides the weights and the gradients of learner 0 write: batch norm's
  /// running figures, of learner 0 alone or of those that are computed together with it.
  virtual std::span<const scalecom::layout::Tensor> figures() const { return {}; }
  virtual std::span<float> figure_values() { return {}; }

  /// Losses and gradients of any number of learners.
  virtual void gradients(std::span<const Shard> shards) const = 0;
  /// Whether it is faster to ask for all learners' at once, because they are computed together.
  virtual bool joins_learners() const { return false; }
  /// The samples [begin, end) of the test set.
  virtual Score score(std::int64_t begin, std::int64_t end) const = 0;

  /// How many samples are written down when a run is complete, and those in [begin, end): for tasks
  /// that make text. A line each.
  virtual std::int64_t transcript_samples() const { return 0; }
  virtual std::vector<Transcript> transcripts(std::int64_t /*begin*/, std::int64_t /*end*/) const {
    return {};
  }
};

}  // namespace train::tasks
