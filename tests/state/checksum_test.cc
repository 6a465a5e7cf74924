#include "scalecom/state/checksum.h"

#include <gtest/gtest.h>

#include <bit>
#include <cstdint>
#include <set>
#include <string>
#include <vector>

namespace scalecom::state {
namespace {

std::string sum_of(const std::vector<float>& data) {
  Checksum sum;
  sum.add(data);
  return sum.text();
}

std::vector<float> ramp(int size) {
  std::vector<float> data;
  for (int i = 0; i < size; ++i) data.push_back(static_cast<float>(i) * 0.5F - 1);
  return data;
}

// Saved files rely on it.
TEST(Checksum, IsWhatItAlwaysWas) {
  EXPECT_EQ(sum_of(ramp(10)), "a1a1650c6a025e67");
  EXPECT_EQ(Checksum().text(), "0000000000000000");
  EXPECT_EQ(hex16(0x12ab), "00000000000012ab");
}

TEST(Checksum, SeesEveryBitAndEverySwap) {
  const std::vector<float> data = ramp(37);
  std::set<std::string> seen{sum_of(data)};
  std::size_t variants = 1;
  for (std::size_t i = 0; i < data.size(); ++i) {
    for (int bit = 0; bit < 32; ++bit, ++variants) {
      std::vector<float> other = data;
      other[i] = std::bit_cast<float>(std::bit_cast<std::uint32_t>(other[i]) ^ (1U << bit));
      seen.insert(sum_of(other));
    }
    for (std::size_t j = 0; j < i; ++j, ++variants) {
      std::vector<float> other = data;
      std::swap(other[i], other[j]);
      seen.insert(sum_of(other));
    }
  }
  EXPECT_EQ(seen.size(), variants);
}

TEST(Checksum, TellsLengthsApart) {
  std::set<std::string> seen;
  for (std::size_t size = 0; size < 40; ++size) seen.insert(sum_of(std::vector<float>(size)));
  EXPECT_EQ(seen.size(), 40U);
}

}  // namespace
}  // namespace scalecom::state
