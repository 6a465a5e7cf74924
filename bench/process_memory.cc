#include "bench/process_memory.h"

#include <malloc.h>

#include <fstream>
#include <string>

namespace bench {
namespace {

std::int64_t status_bytes(const std::string& key) {
  std::ifstream status("/proc/self/status");
  std::string word;
  while (status >> word) {
    std::int64_t kilobytes = 0;
    if (word == key && status >> kilobytes) return kilobytes * 1024;
  }
  return 0;
}

}  // namespace

std::int64_t resident_bytes() {
  return status_bytes("VmRSS:");
}

std::int64_t peak_resident_bytes() {
  return status_bytes("VmHWM:");
}

void reset_peak() {
  std::ofstream("/proc/self/clear_refs") << "5";
}

void trim_and_reset_peak() {
  malloc_trim(0);
  reset_peak();
}

}  // namespace bench
