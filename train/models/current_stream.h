#pragma once

#include <ATen/core/Tensor.h>

#include "scalecom/core/stream.h"

/// For the files that compute with torch, whose headers take half a minute.
namespace train::models {

/// On which torch computes with a tensor of a GPU like this.
scalecom::core::Stream current_stream(const at::Tensor& x);

}  // namespace train::models
