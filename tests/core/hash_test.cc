#include "scalecom/core/hash.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <set>

namespace scalecom::core {
namespace {

// Ranks on different machines rely on these numbers, and so do saved files: they may never change.
TEST(Hash, GivesTheNumbersItAlwaysGave) {
  EXPECT_EQ(mix(0), 0xe220a8397b1dcdafULL);  // the first number of SplitMix64 from seed 0
  EXPECT_EQ(mix(1), 0x910a2dec89025cc1ULL);
  EXPECT_EQ(mix(std::numeric_limits<std::uint64_t>::max()), 0xe4d971771b652c20ULL);
  EXPECT_EQ(combine(1, 2), 0xe06dd043328bd285ULL);
  EXPECT_EQ(combine(2, 1), 0xbcd9dbb49673066bULL);
  EXPECT_EQ(hash(""), 0xc3817c016ba4ff30ULL);
  EXPECT_EQ(hash("conv1.weight"), 0x8b8a08a85128a1b0ULL);
  EXPECT_EQ(hash("größe"),
            0xa9b541425f6e8284ULL);  // bytes over 127 count as such, whether char is signed or not
}

TEST(Hash, CanBeUsedWhereConstantsAre) {
  static_assert(mix(0) == 0xe220a8397b1dcdafULL);
  static_assert(hash("a") != hash("b"));
}

TEST(Hash, TellsSmallNumbersApart) {
  std::set<std::uint64_t> seen;
  for (std::uint64_t a = 0; a < 100; ++a) {
    for (std::uint64_t b = 0; b < 100; ++b) seen.insert(combine(a, b));
  }
  EXPECT_EQ(seen.size(), 10000U);
}

}  // namespace
}  // namespace scalecom::core
