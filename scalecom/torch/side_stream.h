#pragma once

#include "scalecom/core/stream.h"

namespace scalecom::torch {

/// Whether this build can take tensors of a GPU.
bool has_cuda();

/// A CUDA stream beside those that torch computes on.
core::Stream side_stream(core::Device device);

/// torch's current stream of a GPU, which torch keeps.
core::Stream current_stream(core::Device device);

/// What is put on `side` from now on waits for all that is on torch's current stream of its device.
void wait_for_current(const core::Stream& side);

}  // namespace scalecom::torch
