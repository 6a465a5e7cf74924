#include "scalecom/core/device.h"

#include <charconv>

#include "scalecom/core/cuda/runtime.h"
#include "scalecom/core/error.h"
#include "scalecom/core/text.h"

namespace scalecom::core {

std::string to_string(Device device) {
  return device.is_cuda() ? concat("cuda:", device.index) : "cpu";
}

Device parse_device(const std::string& text) {
  if (text == "cpu") return {};
  constexpr std::string_view kPrefix = "cuda";
  Device device = Device::cuda();
  const char* const end = text.data() + text.size();
  bool understood = text.starts_with(kPrefix);
  if (understood && text.size() > kPrefix.size()) {
    const char* const digits = text.data() + kPrefix.size() + 1;
    const auto [stopped, failure] = std::from_chars(digits, end, device.index);
    understood = digits[-1] == ':' && digits < end && stopped == end && failure == std::errc() &&
                 device.index >= 0;
  }
  if (!understood) {
    throw UsageError(
        concat("[device] '", text, "' is no device; give cpu, cuda or cuda:0, cuda:1 ..."));
  }
  cuda::require(device);
  return device;
}

}  // namespace scalecom::core
