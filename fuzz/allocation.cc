#include "fuzz/allocation.h"

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define SCALECOM_FUZZ_WATCHES_ALLOCATION
#endif
#endif

#ifdef SCALECOM_FUZZ_WATCHES_ALLOCATION

#include <sanitizer/allocator_interface.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>

namespace fuzz {
namespace {

std::atomic<long> live{0};  // since the limit was set; what is freed may be older
std::atomic<long> limit{0};

void on_allocation(const volatile void* /*block*/, std::size_t bytes) {
  const long most = limit.load(std::memory_order_relaxed);
  const long now = live.fetch_add(static_cast<long>(bytes)) + static_cast<long>(bytes);
  if (most == 0 || now <= most) return;
  limit = 0;
  std::fprintf(stderr, "fuzz: %ld bytes allocated, and %ld are the most for this input\n", now,
               most);
  std::abort();
}

void on_release(const volatile void* block) {
  if (block == nullptr) return;
  const auto bytes = __sanitizer_get_allocated_size(const_cast<const void*>(block));
  live.fetch_sub(static_cast<long>(bytes));
}

}  // namespace

AllocationLimit::AllocationLimit(std::size_t most) {
  static const bool installed =
      __sanitizer_install_malloc_and_free_hooks(on_allocation, on_release) != 0;
  if (!installed) std::abort();
  live = 0;
  limit = static_cast<long>(most);
}

AllocationLimit::~AllocationLimit() {
  limit = 0;
}

}  // namespace fuzz

#else

namespace fuzz {

AllocationLimit::AllocationLimit(std::size_t /*most*/) {}
AllocationLimit::~AllocationLimit() = default;

}  // namespace fuzz

#endif
