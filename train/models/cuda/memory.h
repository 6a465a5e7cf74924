#pragma once

#include <cstdint>

#include "scalecom/core/device.h"

namespace train::models::cuda {

/// The most memory of a GPU that torch has had in this process, for its tensors or to give them, at
/// any time since the last reset_peak(). 0 where libtorch was built without CUDA.
std::int64_t peak_bytes(scalecom::core::Device device);
/// Gives back what no tensor has now.
void reset_peak(scalecom::core::Device device);

}  // namespace train::models::cuda
