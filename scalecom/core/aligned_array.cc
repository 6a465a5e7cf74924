#include "scalecom/core/aligned_array.h"

#include <sys/mman.h>

#include <cstdlib>
#include <cstring>
#include <new>

namespace scalecom::core {
namespace {

// From this size on, a mapping of its own: zero pages come from the kernel untouched, and the
// memory goes back at once when released.
constexpr std::size_t kMappedBytes = std::size_t{1} << 20;
constexpr std::size_t kAlignment = 64;

std::size_t rounded_up(std::size_t bytes) {
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

}  // namespace

void* allocate_zeroed(std::size_t bytes) {
  if (bytes >= kMappedBytes) {
    void* data = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (data == MAP_FAILED) throw std::bad_alloc();
    madvise(data, bytes, MADV_HUGEPAGE);  // advice: its failure changes nothing
    return data;
  }
  void* data = std::aligned_alloc(kAlignment, rounded_up(bytes));
  if (data == nullptr) throw std::bad_alloc();
  std::memset(data, 0, bytes);
  return data;
}

void release_zeroed(void* data, std::size_t bytes) {
  if (bytes >= kMappedBytes) {
    munmap(data, bytes);
  } else {
    std::free(data);
  }
}

}  // namespace scalecom::core
