#pragma once

#include <cstdint>
#include <string>

namespace bench {

/// What a network device has carried since it came up, headers of Ethernet, IP and TCP included.
struct InterfaceCounters {
  std::int64_t bytes_sent = 0;
  std::int64_t packets_sent = 0;
  std::int64_t bytes_received = 0;
  std::int64_t packets_received = 0;

  friend InterfaceCounters operator-(const InterfaceCounters& a, const InterfaceCounters& b) {
    return {a.bytes_sent - b.bytes_sent, a.packets_sent - b.packets_sent,
            a.bytes_received - b.bytes_received, a.packets_received - b.packets_received};
  }
};

/// As the kernel counts it. UsageError where this process sees no such device.
InterfaceCounters read_counters(const std::string& device);

}  // namespace bench
