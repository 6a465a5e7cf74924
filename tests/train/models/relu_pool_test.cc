#include "train/models/relu_pool.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

namespace train::models {
namespace {

constexpr std::int64_t kRows = 3;
constexpr std::int64_t kPlaces = 2;

class ReluPoolTest : public testing::TestWithParam<std::int64_t> {
 protected:
  std::int64_t channels() const { return GetParam(); }
  std::size_t pooled() const { return static_cast<std::size_t>(kRows * kPlaces * channels()); }
  /// The places of a window in the input, as documented.
  std::vector<std::size_t> window(std::int64_t row, std::int64_t place, std::int64_t c) const {
    std::vector<std::size_t> at;
    for (std::int64_t y = 0; y < 2; ++y) {
      for (std::int64_t x = 0; x < 2; ++x) {
        at.push_back(static_cast<std::size_t>(
            ((2 * row + y) * 2 * kPlaces + 2 * place + x) * channels() + c));
      }
    }
    return at;
  }
};

// Channel counts that are and are not a multiple of what a vector holds.
INSTANTIATE_TEST_SUITE_P(Channels, ReluPoolTest, testing::Values(1, 3, 4, 16, 19));

TEST_P(ReluPoolTest, EqualsItsDefinition) {
  std::vector<float> in(4 * pooled());
  // Few values, so that ties and windows without anything over 0 are among them.
  for (std::size_t i = 0; i < in.size(); ++i) in[i] = static_cast<float>(i * i * 7 % 5) - 3;
  std::vector<float> out(pooled());
  std::vector<Source> source(pooled());
  relu_pool(in.data(), kRows, kPlaces, channels(), out.data(), source.data());
  std::vector<float> grad(pooled());
  for (std::size_t i = 0; i < grad.size(); ++i) grad[i] = static_cast<float>(i) + 1;
  std::vector<float> grad_in(in.size(), -1);
  relu_pool_backward(grad.data(), source.data(), kRows, kPlaces, channels(), grad_in.data());

  for (std::int64_t row = 0; row < kRows; ++row) {
    for (std::int64_t place = 0; place < kPlaces; ++place) {
      for (std::int64_t c = 0; c < channels(); ++c) {
        const auto at = static_cast<std::size_t>((row * kPlaces + place) * channels() + c);
        float largest = 0;
        for (const std::size_t i : window(row, place, c)) largest = std::max(largest, in[i]);
        EXPECT_EQ(out[at], largest);
        bool taken = largest == 0;
        for (const std::size_t i : window(row, place, c)) {
          const bool first = !taken && in[i] == largest;
          EXPECT_EQ(grad_in[i], first ? grad[at] : 0);
          taken = taken || first;
        }
      }
    }
  }
}

}  // namespace
}  // namespace train::models
