#include "scalecom/methods/dgc/threshold.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "scalecom/kernels/largest.h"

namespace scalecom::methods::dgc {
namespace {

constexpr double kSampled = 0.01;
constexpr double kLeastKept = 2;  // of a sample
constexpr int kMostAdaptations = 10;
constexpr double kTooMany = 1.3;
constexpr double kTooFew = 0.8;
constexpr float kLower = 0.8F;

// Every how many numbers one is looked at.
std::int64_t sample_stride(std::int64_t length, double rate) {
  const double sampled = std::max(kSampled * static_cast<double>(length), kLeastKept * rate);
  return std::max<std::int64_t>(1,
                                static_cast<std::int64_t>(static_cast<double>(length) / sampled));
}

}  // namespace

std::vector<std::uint32_t> select_by_sample(const float* numbers, std::int64_t length, double rate,
                                            std::int64_t keep, std::uint64_t draw) {
  const std::int64_t stride = sample_stride(length, rate);
  const auto first = static_cast<std::int64_t>(draw % static_cast<std::uint64_t>(stride));
  const std::int64_t sampled = (length - first + stride - 1) / stride;
  const auto of_sample = static_cast<std::int64_t>(static_cast<double>(sampled) / rate);
  std::int32_t least =
      kernels::key_reached(numbers, length, first, stride, std::max<std::int64_t>(1, of_sample));
  for (int adaptation = 0;; ++adaptation) {
    std::vector<std::uint32_t> found = kernels::positions_from(numbers, length, least);
    const auto count = static_cast<double>(found.size());
    if (count > kTooMany * static_cast<double>(keep)) {
      return kernels::keep_largest(numbers, found, keep);
    }
    if (count >= kTooFew * static_cast<double>(keep) || adaptation == kMostAdaptations) {
      return found;
    }
    least = std::bit_cast<std::int32_t>(std::bit_cast<float>(least) * kLower);
  }
}

}  // namespace scalecom::methods::dgc
