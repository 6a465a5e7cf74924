#include "fuzz/limits.h"

#include <ctime>

#include "fuzz/input.h"

// Clang says it one way and GCC the other.
#if defined(__SANITIZE_ADDRESS__)
#define SCALECOM_FUZZ_WATCHES_ALLOCATION
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define SCALECOM_FUZZ_WATCHES_ALLOCATION
#endif
#endif
#ifdef SCALECOM_FUZZ_WATCHES_ALLOCATION
#include <atomic>
#include <cstdio>
#include <cstdlib>

// As in <sanitizer/allocator_interface.h>, which comes with clang; GCC's library has them too.
extern "C" int __sanitizer_install_malloc_and_free_hooks(void (*on_allocation)(const volatile void*,
                                                                               std::size_t),
                                                         void (*on_release)(const volatile void*));
extern "C" std::size_t __sanitizer_get_allocated_size(const volatile void* block);
#endif

namespace fuzz {
namespace {

constexpr double kMostSeconds = 1;

double own_seconds() {
  timespec time{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

#ifdef SCALECOM_FUZZ_WATCHES_ALLOCATION

std::atomic<long> live{0};  // since the limit was set; what is freed may be older
std::atomic<long> limit{0};

void on_allocation(const volatile void* /*block*/, std::size_t bytes) {
  const long most = limit.load(std::memory_order_relaxed);
  const long now = live.fetch_add(static_cast<long>(bytes)) + static_cast<long>(bytes);
  if (most == 0 || now <= most) return;
  limit = 0;
  std::fprintf(stderr, "fuzz: %ld bytes allocated; %ld are the most for this input\n", now, most);
  std::abort();
}

void on_release(const volatile void* block) {
  if (block == nullptr) return;
  const auto bytes = __sanitizer_get_allocated_size(block);
  live.fetch_sub(static_cast<long>(bytes));
}

void limit_allocation(std::size_t most) {
  static const int installed = __sanitizer_install_malloc_and_free_hooks(on_allocation, on_release);
  require(installed != 0, "allocation can be watched");
  live = 0;
  limit = static_cast<long>(most);
}

#else

void limit_allocation(std::size_t /*most*/) {}

#endif

}  // namespace

Limits::Limits(std::size_t most) : begin_(own_seconds()) {
  limit_allocation(most);
}

Limits::~Limits() {
  limit_allocation(0);
  require(own_seconds() - begin_ <= kMostSeconds, "an input is read in a second");
}

}  // namespace fuzz
