#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "scalecom/core/device.h"
#include "scalecom/core/stream.h"
#include "train/data/samples.h"
#include "train/models/model.h"

namespace train::models {

/// One learner's mini-batch, and where its results go, on the classifier's device.
struct Batch {
  std::span<const data::Pick> picks;  ///< of the training set
  std::span<float> gradient;          ///< of the mean loss, in the order of Model::tensors()
  float* loss = nullptr;              ///< that mean
  /// Whether the batch's figures go into the running ones, with those of the batches that it is
  /// joined with.
  bool keeps_figures = false;
  scalecom::core::Stream stream = {};  ///< in order on which the results come
};

struct ClassifierScore {
  double loss = 0;  ///< summed over the samples
  std::int64_t correct = 0;
};

/// A model with its weights and its data on one device: its loss (cross entropy) and its gradient.
///
/// gradients() and score() may be called by many threads at the same time as long as none writes
/// the weights, and at most one batch at a time keeps figures. On the CPU each computes in the
/// calling thread alone. The same weights and picks give the same bits, where batches are joined,
/// given the same others beside them.
class Classifier {
 public:
  struct Options {
    std::uint64_t seed = 0;  ///< of the first weights, which are the same on every device
    std::int64_t batch = 1;  ///< the size that gradient() is mostly asked for
    int at_once = 1;         ///< how many batches a GPU works on at the same time
    /// How many learners' batches gradients() may be given at once, so that a GPU can join them;
    /// 1 to have each computed apart, with the bits that it has alone.
    std::int64_t joined = 1;
  };

  virtual ~Classifier() = default;

  virtual scalecom::core::Device device() const = 0;
  virtual const Model& model() const = 0;
  virtual std::int64_t training_samples() const = 0;
  virtual std::int64_t test_samples() const = 0;

  /// The weights and the running figures, on the device. Who has written weights says so, in order
  /// on `stream`, before anybody computes with them.
  virtual std::span<float> weights() = 0;
  virtual std::span<float> figures() = 0;
  virtual void weights_written(const scalecom::core::Stream& stream) = 0;

  /// Whether it is faster to ask for all learners' gradients at once.
  virtual bool joins() const { return false; }
  virtual void gradients(std::span<const Batch> batches) = 0;
  virtual ClassifierScore score(std::span<const data::Pick> picks) = 0;
};

/// On the device; the sets are copied there. core::DeviceError where it has too little memory.
std::unique_ptr<Classifier> make_classifier(scalecom::core::Device device,
                                            std::unique_ptr<Model> model, data::Samples training,
                                            data::Samples test, const Classifier::Options& options);

/// The share of a batch's figures in the new running ones.
constexpr double kFigureShare = 0.1;

}  // namespace train::models
