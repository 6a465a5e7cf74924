#include "scalecom/methods/dgc/threshold.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "scalecom/core/hash.h"

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

std::vector<std::uint32_t> select_by_sample(Numbers& numbers, double rate, std::int64_t keep,
                                            std::uint64_t draw) {
  const std::int64_t stride = sample_stride(numbers.length(), rate);
  const auto first = static_cast<std::int64_t>(draw % static_cast<std::uint64_t>(stride));
  const std::int64_t sampled = (numbers.length() - first + stride - 1) / stride;
  const auto of_sample = static_cast<std::int64_t>(static_cast<double>(sampled) / rate);
  std::int32_t least = numbers.key_reached(first, stride, std::max<std::int64_t>(1, of_sample));
  for (int adaptation = 0;; ++adaptation) {
    std::vector<std::uint32_t> found = numbers.positions_from(least);
    const auto count = static_cast<double>(found.size());
    if (count > kTooMany * static_cast<double>(keep)) return numbers.keep_largest(found, keep);
    if (count >= kTooFew * static_cast<double>(keep) || adaptation == kMostAdaptations) {
      return found;
    }
    least = std::bit_cast<std::int32_t>(std::bit_cast<float>(least) * kLower);
  }
}

std::uint64_t sample_draw(const std::string& tensor, std::int64_t step) {
  return core::combine(core::hash(tensor), static_cast<std::uint64_t>(step));
}

}  // namespace scalecom::methods::dgc
