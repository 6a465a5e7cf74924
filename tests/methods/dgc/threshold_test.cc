#include "scalecom/methods/dgc/threshold.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <random>

#include "scalecom/kernels/largest.h"

namespace scalecom::methods::dgc {
namespace {

class HostArray final : public Numbers {
 public:
  explicit HostArray(const std::vector<float>& numbers) : numbers_(numbers) {}

  std::int64_t length() const override { return static_cast<std::int64_t>(numbers_.size()); }
  std::int32_t key_reached(std::int64_t first, std::int64_t stride, std::int64_t keep) override {
    return kernels::key_reached(numbers_.data(), length(), first, stride, keep);
  }
  std::vector<std::uint32_t> positions_from(std::int32_t least) override {
    return kernels::positions_from(numbers_.data(), length(), least);
  }
  std::vector<std::uint32_t> keep_largest(const std::vector<std::uint32_t>& candidates,
                                          std::int64_t keep) override {
    return kernels::keep_largest(numbers_.data(), candidates, keep);
  }

 private:
  const std::vector<float>& numbers_;
};

std::vector<std::uint32_t> selected(const std::vector<float>& numbers, double rate,
                                    std::int64_t keep, std::uint64_t draw) {
  HostArray array(numbers);
  return select_by_sample(array, rate, keep, draw);
}

// The rule stated again: a threshold, lowered ten times at most; too many are sorted out.
std::vector<std::uint32_t> plainly(const std::vector<float>& numbers, double rate,
                                   std::int64_t keep, std::uint64_t draw) {
  const double length = static_cast<double>(numbers.size());
  const auto stride = static_cast<std::size_t>(
      std::max(1.0, std::floor(length / std::max(0.01 * length, 2 * rate))));
  std::vector<float> sample;
  for (std::size_t i = draw % stride; i < numbers.size(); i += stride) {
    sample.push_back(std::abs(numbers[i]));
  }
  std::sort(sample.begin(), sample.end(), std::greater<>());
  const double of_sample = std::max(1.0, std::floor(static_cast<double>(sample.size()) / rate));
  float threshold = sample[static_cast<std::size_t>(of_sample) - 1];
  std::vector<std::uint32_t> found;
  for (int tries = 0; tries <= 10; ++tries) {
    found.clear();
    for (std::uint32_t i = 0; i < numbers.size(); ++i) {
      if (std::abs(numbers[i]) >= threshold) found.push_back(i);
    }
    if (static_cast<double>(found.size()) >= 0.8 * static_cast<double>(keep)) break;
    threshold *= 0.8F;
  }
  if (static_cast<double>(found.size()) > 1.3 * static_cast<double>(keep)) {
    std::stable_sort(found.begin(), found.end(), [&](std::uint32_t a, std::uint32_t b) {
      return std::abs(numbers[a]) > std::abs(numbers[b]);
    });
    found.resize(static_cast<std::size_t>(keep));
    std::sort(found.begin(), found.end());
  }
  return found;
}

TEST(SelectBySample, EqualsItsPlainStatement) {
  std::mt19937 random(51);
  std::normal_distribution<float> draw_number;
  for (const std::size_t length : {1U, 5U, 1000U, 50000U, 200000U}) {
    for (const double rate : {4.0, 100.0, 1000.0}) {
      for (const std::uint64_t draw : {0U, 1U, 77U, 1234567U}) {
        std::vector<float> numbers(length);
        for (float& number : numbers) number = std::pow(draw_number(random), 3.0F);
        const auto keep = std::max<std::int64_t>(
            1, static_cast<std::int64_t>(static_cast<double>(length) / rate));
        EXPECT_EQ(selected(numbers, rate, keep, draw), plainly(numbers, rate, keep, draw))
            << length << " " << rate << " " << draw;
      }
    }
  }
}

TEST(SelectBySample, ServesArraysThatASampleMisjudges) {
  // Nothing but zeros: all reach the threshold, and the first are kept.
  std::vector<float> numbers(10000, 0.0F);
  std::vector<std::uint32_t> first(100);
  for (std::uint32_t i = 0; i < 100; ++i) first[i] = i;
  EXPECT_EQ(selected(numbers, 100, 100, 3), first);
  // One number so large that ten lower thresholds are over all the others.
  numbers.assign(10000, 1.0F);
  for (std::size_t i = 0; i < numbers.size(); i += 50) numbers[i] = 1e9F;
  numbers[0] = 1e30F;
  const auto found = selected(numbers, 10000, 1, 0);
  EXPECT_EQ(found, std::vector<std::uint32_t>{0});
  numbers.assign(10000, 1.0F);
  numbers[0] = 1e9F;
  EXPECT_EQ(selected(numbers, 100, 100, 0), plainly(numbers, 100, 100, 0));
}

}  // namespace
}  // namespace scalecom::methods::dgc
