#pragma once

#include <cstdint>

#include "scalecom/core/device.h"

namespace train::machine {

/// The most memory that this process has had in use at any time.
std::int64_t peak_bytes();

/// What this process takes of a GPU's memory after this was made. What others take of it does not
/// count, nor what CUDA needs for itself: its context, kernels and graphs.
class DeviceMemory {
 public:
  explicit DeviceMemory(scalecom::core::Device device);
  /// The most that the library's arrays have taken, and the most that torch has: together never
  /// less than there was at one time, and hardly more, as a run gives little back before its end.
  std::int64_t peak() const;

 private:
  scalecom::core::Device device_;
};

}  // namespace train::machine
