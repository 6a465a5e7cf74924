#include "tests/holdings.h"

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>

// GCC says by a macro what clang says by a feature.
#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SCALECOM_TEST_IS_SANITIZED
#endif
#elif defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SCALECOM_TEST_IS_SANITIZED
#endif

namespace scalecom::testing {
namespace {

int entries(const char* folder) {
  const std::filesystem::directory_iterator all(folder);
  return static_cast<int>(std::distance(begin(all), end(all)));
}

}  // namespace

Holdings holdings() {
  std::int64_t all = 0;
  std::int64_t resident = 0;
  std::ifstream("/proc/self/statm") >> all >> resident;
  // The folder of open files is open while it is read.
  return {resident * sysconf(_SC_PAGESIZE), entries("/proc/self/task"),
          entries("/proc/self/fd") - 1};
}

bool resident_memory_counts() {
#ifdef SCALECOM_TEST_IS_SANITIZED
  return false;
#else
  return true;
#endif
}

}  // namespace scalecom::testing
