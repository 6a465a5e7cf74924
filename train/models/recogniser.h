#pragma once

#include <cstdint>
#include <memory>

#include "train/models/sequence.h"

namespace train::models {

/// Speech into symbols: LSTMs in both directions over frames of sound, and CTC.
///
/// A row has the indices of `frames` frames in the table, and then `labels` labels from 1 on, 0
/// after the last. A score is the sample's loss, followed by the logarithms of the probabilities of
/// all classes at each of steps().
struct RecogniserOptions {
  std::int64_t bands = 40;  ///< numbers of a frame
  std::int64_t frames = 384;
  std::int64_t together = 3;  ///< frames that the network takes as one step
  std::int64_t labels = 7;    ///< the most of a sample
  std::int64_t classes = 11;  ///< nothing among them
  std::int64_t hidden = 256;  ///< in each direction
  std::int64_t layers = 4;
  std::int64_t batch = 1;  ///< a learner's mini-batch

  std::int64_t width() const { return frames + labels; }
  std::int64_t steps() const { return frames / together; }
};

std::unique_ptr<SequenceModel> make_recogniser(const RecogniserOptions& options);

}  // namespace train::models
