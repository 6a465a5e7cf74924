#pragma once

namespace scalecom::core {

enum class DeviceKind : unsigned char { kCpu };

/// Where an array lives.
struct Device {
  DeviceKind kind = DeviceKind::kCpu;
  int index = 0;

  bool operator==(const Device&) const = default;
};

}  // namespace scalecom::core
