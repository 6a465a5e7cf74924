#pragma once

#include <ATen/core/Tensor.h>

#include <span>

#include "train/models/model.h"

/// For the files that compute with torch, whose headers take half a minute.
namespace train::models {

/// A batch on its way through a model, or in training those of several learners, one after the
/// other. Then parameters and figures have the learners as their first dimension: parameters as
/// views that repeat the same numbers, figures each learner's own.
struct Model::Pass {
  at::Tensor x;  ///< in: (samples, channels, height, width), channels last; out: (samples, classes)
  std::span<const at::Tensor> parameters;  ///< of the shapes of tensors()
  /// Of the shapes of figures(). In training they are written: those of this batch.
  std::span<const at::Tensor> figures;
  bool training = true;
  std::int64_t learners = 1;  ///< more than one only where Model::takes_learners() says so
};

}  // namespace train::models
