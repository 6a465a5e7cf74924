#include "scalecom/kernels/largest.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>
#include <span>

#include "scalecom/core/thread_pool.h"
#include "scalecom/kernels/kernels.h"
#include "scalecom/kernels/select.h"

namespace scalecom::kernels {
namespace {

// Numbers of one task of the pool.
constexpr std::int64_t kBlock = 65'536;
// Numbers asked about together, so that the compiler uses vectors: most groups have none wanted.
constexpr std::int64_t kGroup = 32;
// From which on a sample pays, and the most numbers that it looks at.
constexpr std::int64_t kWorthSampling = 4096;
constexpr std::int64_t kSampled = 65'536;
constexpr std::int64_t kLeastStride = 16;

bool any_reaches(const float* numbers, std::int32_t least) {
  std::int32_t any = 0;
  for (std::int64_t i = 0; i < kGroup; ++i) {
    any |= static_cast<std::int32_t>(magnitude_key(numbers[i]) >= least);
  }
  return any != 0;
}

std::vector<std::uint32_t> positions_within(const float* numbers, std::int64_t begin,
                                            std::int64_t end, std::int32_t least) {
  std::vector<std::uint32_t> found;
  for (std::int64_t group = begin; group < end; group += kGroup) {
    const std::int64_t stop = std::min(end, group + kGroup);
    if (stop - group == kGroup && !any_reaches(numbers + group, least)) continue;
    for (std::int64_t i = group; i < stop; ++i) {
      if (magnitude_key(numbers[i]) >= least) found.push_back(static_cast<std::uint32_t>(i));
    }
  }
  return found;
}

// A key that `keep` of the numbers are likely to reach, and not many more.
std::int32_t likely_bound(const float* numbers, std::int64_t length, std::int64_t keep) {
  if (length < kWorthSampling) return 0;
  const std::int64_t stride = std::max(kLeastStride, length / kSampled);
  const std::int64_t samples = (length + stride - 1) / stride;
  const auto sampled = static_cast<double>(samples);
  const double expected = static_cast<double>(keep) * sampled / static_cast<double>(length);
  // Four standard deviations of a random sample's count, and a little for the smallest.
  const double wanted = expected + 4 * std::sqrt(expected) + 4;
  if (wanted >= sampled) return 0;
  return key_reached(numbers, length, 0, stride, std::llround(wanted));
}

}  // namespace

std::int32_t key_reached(const float* numbers, std::int64_t length, std::int64_t first,
                         std::int64_t stride, std::int64_t keep) {
  std::vector<std::int32_t> keys;
  keys.reserve(static_cast<std::size_t>((length - first + stride - 1) / stride));
  for (std::int64_t i = first; i < length; i += stride) keys.push_back(magnitude_key(numbers[i]));
  const auto kth = keys.begin() + static_cast<std::ptrdiff_t>(keep) - 1;
  std::nth_element(keys.begin(), kth, keys.end(), std::greater<>());
  return *kth;
}

std::vector<std::uint32_t> positions_from(const float* numbers, std::int64_t length,
                                          std::int32_t least) {
  const std::int64_t blocks = (length + kBlock - 1) / kBlock;
  std::vector<std::vector<std::uint32_t>> found(static_cast<std::size_t>(blocks));
  core::parallel_for(blocks, [&](std::int64_t b) {
    found[static_cast<std::size_t>(b)] =
        positions_within(numbers, b * kBlock, std::min(length, (b + 1) * kBlock), least);
  });
  std::vector<std::uint32_t> all;
  all.reserve(std::accumulate(found.begin(), found.end(), std::size_t{0},
                              [](std::size_t sum, const auto& one) { return sum + one.size(); }));
  for (const auto& one : found) all.insert(all.end(), one.begin(), one.end());
  return all;
}

std::vector<std::uint32_t> keep_largest(const float* numbers,
                                        const std::vector<std::uint32_t>& candidates,
                                        std::int64_t keep) {
  if (keep >= static_cast<std::int64_t>(candidates.size())) return candidates;
  if (keep <= 0) return {};
  // A key and its position as one number, greater for a larger key, then for a lower position.
  const auto ranked = [&](std::uint32_t position) {
    return (static_cast<std::uint64_t>(magnitude_key(numbers[position])) << 32) |
           (0xffffffffU - position);
  };
  std::vector<std::uint64_t> order;
  order.reserve(candidates.size());
  for (const std::uint32_t position : candidates) order.push_back(ranked(position));
  const auto kth = order.begin() + static_cast<std::ptrdiff_t>(keep) - 1;
  std::nth_element(order.begin(), kth, order.end(), std::greater<>());
  std::vector<std::uint32_t> kept;
  kept.reserve(static_cast<std::size_t>(keep));
  for (const std::uint32_t position : candidates) {
    if (ranked(position) >= *kth) kept.push_back(position);
  }
  return kept;
}

void select_largest(const float* numbers, std::int64_t length, std::int64_t keep,
                    std::uint32_t* positions) {
  if (keep <= 0) return;
  const std::int32_t bound = likely_bound(numbers, length, keep);
  if (bound > 0 || length < kWorthSampling) {
    const auto candidates = positions_from(numbers, length, bound);
    if (static_cast<std::int64_t>(candidates.size()) >= keep) {
      const auto kept = keep_largest(numbers, candidates, keep);
      std::copy(kept.begin(), kept.end(), positions);
      return;
    }
  }
  // The sample has misled, or most are wanted: by counting keys, which no array can make slow. With
  // beta 1 what is compared is the memory, so its own array serves as the gradient.
  auto* const array = const_cast<float*>(numbers);
  const Tensor tensor{array, core::DType::kFloat32, array, length};
  std::int64_t count = 0;
  select_exact({&tensor, 1}, {}, keep, positions, &count);
}

}  // namespace scalecom::kernels
