#include "train/machine.h"

#include <sys/resource.h>

#include "scalecom/core/cuda/runtime.h"

namespace train {

namespace core = scalecom::core;

std::int64_t peak_bytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return std::int64_t{usage.ru_maxrss} * 1024;
}

DeviceMemory::DeviceMemory(core::Device device) : device_(device) {
  if (device_.is_cuda()) free_before_ = core::cuda::memory_info(device_).free;
}

std::int64_t DeviceMemory::taken() const {
  return device_.is_cuda() ? free_before_ - core::cuda::memory_info(device_).free : 0;
}

}  // namespace train
