#pragma once

#include <ATen/core/Tensor.h>

#include <span>

#include "train/models/sequence.h"

/// For the files that compute with torch, whose headers take half a minute.
namespace train::models {

struct SequenceModel::Numbers {
  at::Tensor tensor;
};

/// A batch on its way through a model.
struct SequenceModel::Pass {
  at::Tensor rows;                         ///< (samples, width), whole numbers of 64 bits
  std::span<const at::Tensor> parameters;  ///< of the shapes of the tensors
  at::Tensor table;                        ///< (entries, columns)
  at::Tensor noise;  ///< one number of 32 bits to draw from; undefined where nothing is random
};

}  // namespace train::models
