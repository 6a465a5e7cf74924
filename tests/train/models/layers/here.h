#pragma once

#include <c10/core/Device.h>

#include "tests/device.h"

namespace train::models::layers {

/// Where the tensors of a test lie.
inline c10::Device here() {
  const scalecom::core::Device device = scalecom::testing::device();
  if (!device.is_cuda()) return c10::kCPU;
  return {c10::kCUDA, static_cast<c10::DeviceIndex>(device.index)};
}

}  // namespace train::models::layers
