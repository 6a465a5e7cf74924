#pragma once

#include <ATen/core/Tensor.h>

#include <span>

#include "train/models/sequence.h"

/// For the files that compute with torch, whose headers take half a minute.
namespace train::models {

struct SequenceModel::Numbers {
  at::Tensor tensor;
};

/// A batch on its way through a model, or in training those of several learners, one after the
/// other. Then parameters have the learners as their first dimension: views that repeat the same
/// numbers.
struct SequenceModel::Pass {
  at::Tensor rows;                         ///< (samples, width), whole numbers of 64 bits
  std::span<const at::Tensor> parameters;  ///< of the shapes of the tensors
  at::Tensor table;                        ///< (entries, columns)
  /// A number of 32 bits for each learner to draw from; undefined where nothing is random.
  at::Tensor noise;
  std::int64_t learners = 1;  ///< more than one for loss() alone
};

}  // namespace train::models
