#pragma once

#include <cuda_runtime_api.h>

#include "scalecom/core/device.h"

/// For the files that call CUDA themselves.
namespace scalecom::core::cuda {

/// DeviceError that names the operation and what CUDA says, where `status` is an error.
void check(cudaError_t status, const char* operation);

/// The calling thread's device for a while.
class DeviceScope {
 public:
  explicit DeviceScope(Device device);
  ~DeviceScope();
  DeviceScope(const DeviceScope&) = delete;
  DeviceScope& operator=(const DeviceScope&) = delete;

 private:
  int before_ = 0;
  bool changed_ = false;
};

}  // namespace scalecom::core::cuda
