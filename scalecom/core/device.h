#pragma once

#include <cstdint>
#include <string>

namespace scalecom::core {

/// Where an array lies and work is done.
struct Device {
  enum class Kind : std::uint8_t { kCpu, kCuda };

  Kind kind = Kind::kCpu;
  int index = 0;  ///< of a CUDA device

  static Device cuda(int index = 0) { return {Kind::kCuda, index}; }
  bool is_cuda() const { return kind == Kind::kCuda; }
  bool operator==(const Device&) const = default;
};

/// "cpu", "cuda:1"
std::string to_string(Device device);

/// Reads "cpu", "cuda" (the first) or "cuda:1". UsageError for anything else, and where this
/// machine or this build does not have the device, saying why.
Device parse_device(const std::string& text);

}  // namespace scalecom::core
