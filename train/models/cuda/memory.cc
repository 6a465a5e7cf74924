#include "train/models/cuda/memory.h"

#include <c10/cuda/CUDACachingAllocator.h>

#include "train/models/cuda/torch_device.h"

namespace train::models::cuda {
namespace {

namespace core = scalecom::core;
namespace allocator = c10::cuda::CUDACachingAllocator;

c10::DeviceIndex index_of(core::Device device) {
  return static_cast<c10::DeviceIndex>(device.index);
}

}  // namespace

std::int64_t peak_bytes(core::Device device) {
  if (!allocator::get()->initialized()) return 0;
  return translated(device, [&] {
    constexpr auto kAll = static_cast<std::size_t>(c10::CachingAllocator::StatType::AGGREGATE);
    return allocator::getDeviceStats(index_of(device)).reserved_bytes[kAll].peak;
  });
}

void reset_peak(core::Device device) {
  if (!allocator::get()->initialized()) return;  // nothing was ever asked of it
  translated(device, [&] {
    allocator::emptyCache();
    allocator::resetPeakStats(index_of(device));
  });
}

}  // namespace train::models::cuda
