#include "train/machine/memory.h"

#include <sys/resource.h>

#include "scalecom/core/cuda/runtime.h"
#include "train/models/cuda/memory.h"

namespace train::machine {

namespace core = scalecom::core;

std::int64_t peak_bytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return std::int64_t{usage.ru_maxrss} * 1024;
}

DeviceMemory::DeviceMemory(core::Device device) : device_(device) {
  if (!device_.is_cuda()) return;
  core::cuda::reset_peak(device_);
  models::cuda::reset_peak(device_);
}

std::int64_t DeviceMemory::peak() const {
  if (!device_.is_cuda()) return 0;
  return core::cuda::peak_bytes(device_) + models::cuda::peak_bytes(device_);
}

}  // namespace train::machine
