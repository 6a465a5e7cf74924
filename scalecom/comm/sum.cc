#include "scalecom/comm/sum.h"

#include <algorithm>

#include "scalecom/core/arithmetic.h"
#include "scalecom/core/thread_pool.h"

namespace scalecom::comm {
namespace {

/// Partial sums of a block stay in the first-level cache.
constexpr std::int64_t kBlock = 2048;

/// Below this the pool's threads take longer to wake than to add.
constexpr std::int64_t kTask = std::int64_t{1} << 18;

void add(const float* a, const float* b, float* out, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) out[i] = a[i] + b[i];
}

void sum_range(std::span<const float* const> parts, float* out, std::int64_t begin,
               std::int64_t end) {
  alignas(64) float sums[kBlock];
  for (std::int64_t at = begin; at < end; at += kBlock) {
    const std::int64_t count = std::min(kBlock, end - at);
    const float* so_far = parts[0] + at;
    for (std::size_t part = 1; part + 1 < parts.size(); ++part) {
      add(so_far, parts[part] + at, sums, count);
      so_far = sums;
    }
    add(so_far, parts.back() + at, out + at, count);
  }
}

}  // namespace

void sum_in_order(std::span<const float* const> parts, float* out, std::int64_t count) {
  const std::int64_t tasks = (count + kTask - 1) / kTask;
  if (tasks <= 1) {
    const core::DefaultArithmetic arithmetic;
    sum_range(parts, out, 0, count);
    return;
  }
  core::parallel_for(tasks, [&](std::int64_t task) {
    sum_range(parts, out, task * kTask, std::min(count, (task + 1) * kTask));
  });
}

}  // namespace scalecom::comm
