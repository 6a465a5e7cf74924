#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "scalecom/core/device.h"
#include "scalecom/core/stream.h"
#include "train/models/parameters.h"

namespace train::models {

/// Samples as rows of whole numbers, all of one width: what they mean, the model says.
struct Rows {
  std::int64_t width = 0;
  std::vector<std::int32_t> values;

  std::int64_t samples() const {
    return width == 0 ? 0 : static_cast<std::int64_t>(values.size()) / width;
  }
};

/// What learns sequences: its tensors, its loss and its answers. No torch type shows, so that
/// whoever makes one need not compile against torch. Weights of layers have the outputs' index the
/// fastest, as those of Model.
class SequenceModel {
 public:
  virtual ~SequenceModel() = default;
  SequenceModel(const SequenceModel&) = delete;
  SequenceModel& operator=(const SequenceModel&) = delete;

  const Parameters& parameters() const { return parameters_; }

  struct Pass;     // with torch's types: sequence_pass.h
  struct Numbers;  // a tensor

  /// The mean loss over each learner's mini-batch, from which gradients come.
  virtual Numbers loss(const Pass& pass) const = 0;
  /// How well each sample is done, as a row of numbers.
  virtual Numbers score(const Pass& pass) const = 0;
  /// What the model makes of each sample, as a row of numbers; its score unless it has more to say.
  virtual Numbers answer(const Pass& pass) const;

 protected:
  SequenceModel() = default;

  /// NAME.weight and NAME.bias of a layer that each sample of the mini-batch uses at so many
  /// places. Its weights begin as noise in [-bound, bound), its bias as 0.
  void add_linear(const std::string& name, std::int64_t inputs, std::int64_t outputs, double bound,
                  double positions);

  Parameters parameters_;
};

/// One learner's mini-batch, and where its results go, on the engine's device.
struct SequenceBatch {
  const Rows& rows;
  std::int32_t noise = 0;              ///< what the model draws from at random
  std::span<float> gradient;           ///< of the mean loss, in the order of the tensors
  float* loss = nullptr;               ///< that mean
  scalecom::core::Stream stream = {};  ///< in order on which the results come
};

/// A model of sequences with its weights on one device.
///
/// gradients(), score() and answer() may be called by many threads at the same time as long as none
/// writes the weights. On the CPU each computes in the calling thread alone. The same weights and
/// batches give the same bits.
class SequenceEngine {
 public:
  struct Options {
    std::uint64_t seed = 0;    ///< of the first weights, which are the same on every device
    std::int64_t batch = 1;    ///< samples that each batch of gradients() always has
    int at_once = 1;           ///< how many batches a GPU works on at the same time
    int joined = 1;            ///< learners whose batches a GPU may compute as one
    std::vector<float> table;  ///< numbers that rows refer to, `columns` in a row
    std::int64_t columns = 1;
  };

  virtual ~SequenceEngine() = default;

  virtual scalecom::core::Device device() const = 0;
  virtual const Parameters& parameters() const = 0;
  /// On the device. Who has written weights says so, in order on `stream`, before anybody computes
  /// with them.
  virtual std::span<float> weights() = 0;
  virtual void weights_written(const scalecom::core::Stream& stream) = 0;

  /// Of any number of learners.
  virtual void gradients(std::span<const SequenceBatch> batches) = 0;
  /// How many batches in a row are computed as one where their rows are of one width.
  virtual std::int64_t joined() const { return 1; }
  /// The model's rows of numbers, one after the other.
  virtual std::vector<float> score(const Rows& rows) = 0;
  virtual std::vector<float> answer(const Rows& rows) = 0;
};

std::unique_ptr<SequenceEngine> make_sequence_engine(scalecom::core::Device device,
                                                     std::unique_ptr<SequenceModel> model,
                                                     SequenceEngine::Options options);
std::unique_ptr<SequenceEngine> make_host_sequence_engine(std::unique_ptr<SequenceModel> model,
                                                          SequenceEngine::Options options);

}  // namespace train::models
