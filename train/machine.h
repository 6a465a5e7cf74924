#pragma once

#include <cstdint>

#include "scalecom/core/device.h"

namespace train {

/// The most memory that this process has had in use at any time.
std::int64_t peak_bytes();

/// What is taken of a GPU's memory after this was made: a run gives nothing back before its end. Of
/// a GPU that others use too, what they take counts as well.
class DeviceMemory {
 public:
  explicit DeviceMemory(scalecom::core::Device device);
  std::int64_t taken() const;

 private:
  scalecom::core::Device device_;
  std::int64_t free_before_ = 0;
};

}  // namespace train
