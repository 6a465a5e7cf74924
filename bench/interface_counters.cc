#include "bench/interface_counters.h"

#include <fstream>
#include <sstream>

#include "scalecom/core/error.h"
#include "scalecom/core/text.h"

namespace bench {

// "  eth0: 1 2 0 0 0 0 0 0 3 4 ...": bytes and packets received, six more, bytes and packets sent.
InterfaceCounters read_counters(const std::string& device) {
  std::ifstream table("/proc/self/net/dev");
  for (std::string line; std::getline(table, line);) {
    const std::size_t colon = line.find(':');
    if (colon == std::string::npos) continue;
    const std::size_t begin = line.find_first_not_of(' ');
    if (line.substr(begin, colon - begin) != device) continue;
    std::istringstream numbers(line.substr(colon + 1));
    InterfaceCounters counters;
    std::int64_t skipped = 0;
    numbers >> counters.bytes_received >> counters.packets_received;
    for (int i = 0; i < 6; ++i) numbers >> skipped;
    numbers >> counters.bytes_sent >> counters.packets_sent;
    return counters;
  }
  throw scalecom::core::UsageError(
      scalecom::core::concat("[bench] there is no network device '", device, "' here"));
}

}  // namespace bench
