#pragma once

#include <ATen/core/Tensor.h>

#include <span>

#include "train/models/model.h"

/// For the files that compute with torch, whose headers take half a minute.
namespace train::models {

/// A batch on its way through a model.
struct Model::Pass {
  at::Tensor x;  ///< in: (samples, channels, height, width), channels last; out: (samples, classes)
  std::span<const at::Tensor> parameters;  ///< of the shapes of tensors()
  /// Of the shapes of figures(). In training they are written: those of this batch.
  std::span<const at::Tensor> figures;
  bool training = true;
};

}  // namespace train::models
