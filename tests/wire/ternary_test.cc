#include "scalecom/wire/ternary.h"

#include <gtest/gtest.h>

#include <random>

namespace scalecom::wire {
namespace {

using kernels::Ternary;
using layout::Bins;

std::vector<Ternary> draw(const Bins& bins, double share, std::mt19937& random) {
  std::bernoulli_distribution chosen(share);
  std::bernoulli_distribution negative;
  std::vector<Ternary> entries;
  for (std::int64_t i = 0; i < bins.length; ++i) {
    if (chosen(random)) entries.push_back({static_cast<std::uint32_t>(i), negative(random)});
  }
  return entries;
}

std::vector<std::byte> packed(const Bins& bins, const std::vector<Ternary>& entries) {
  std::vector<std::byte> out;
  pack(bins, entries, out);
  return out;
}

bool unpacks(const Bins& bins, const std::vector<std::byte>& bytes) {
  std::vector<Ternary> entries;
  return unpack(bins, bytes, entries);
}

std::vector<std::byte> bytes(std::initializer_list<int> values) {
  std::vector<std::byte> all;
  for (const int value : values) all.push_back(static_cast<std::byte>(value));
  return all;
}

TEST(Ternary, TakesOneByteWhereABinIsUnder64Else2) {
  EXPECT_EQ(word_bytes(1), 1);
  EXPECT_EQ(word_bytes(63), 1);
  EXPECT_EQ(word_bytes(64), 2);
  EXPECT_EQ(word_bytes(kLargestBin), 2);
}

TEST(Ternary, IsLaidOutAsItSays) {
  // +2 and then the last, -49, of the first bin; none of the second; +0 of a tail of 10.
  EXPECT_EQ(packed({110, 50}, {{2, false}, {49, true}, {100, false}}),
            bytes({2 << 2, 49 << 2 | 2 | 1, 0xfc, 1}));
  EXPECT_EQ(packed({600, 500}, {{499, true}}),
            bytes({(499 << 2 | 3) & 0xff, (499 << 2 | 3) >> 8, 0xfc, 0xff}));
  EXPECT_TRUE(packed({0, 50}, {}).empty());
}

TEST(Ternary, ComesBackFromItsBytes) {
  std::mt19937 random(1);
  for (const std::int64_t bin : {1, 2, 50, 63, 64, 500, 16383}) {
    for (const std::int64_t length : {0, 1, 49, 50, 51, 1000, 40000}) {
      for (const double share : {0.0, 0.01, 0.3, 1.0}) {
        const Bins bins{length, bin};
        const std::vector<Ternary> entries = draw(bins, share, random);
        std::vector<Ternary> back;
        ASSERT_TRUE(unpack(bins, packed(bins, entries), back));
        ASSERT_EQ(back, entries) << "bin " << bin << " length " << length;
      }
    }
  }
}

TEST(Ternary, AnEntryIsAWordAndSoIsABinWithoutOne) {
  const Bins bins{1000, 50};
  EXPECT_EQ(packed(bins, {}).size(), 20U);
  EXPECT_EQ(packed(bins, {{3, true}}).size(), 20U);
  EXPECT_EQ(packed(bins, {{3, true}, {4, true}}).size(), 21U);
}

TEST(Ternary, DamagedBytesAreRefused) {
  const Bins bins{110, 50};
  EXPECT_TRUE(unpacks(bins, bytes({8, 199, 0xfc, 1})));
  EXPECT_FALSE(unpacks(bins, {})) << "none";
  EXPECT_FALSE(unpacks(bins, bytes({8, 199, 0xfc}))) << "a bin too few";
  EXPECT_FALSE(unpacks(bins, bytes({8, 199, 0xfc, 1, 1}))) << "a word too many";
  EXPECT_FALSE(unpacks(bins, bytes({8, 199, 0xfc, 0}))) << "the last entry says that more follow";
  EXPECT_FALSE(unpacks(bins, bytes({8, 50 << 2 | 1, 0xfc, 1}))) << "outside its bin";
  EXPECT_FALSE(unpacks(bins, bytes({8, 199, 0xfc, 10 << 2 | 1}))) << "outside the tail";
  EXPECT_FALSE(unpacks(bins, bytes({8, 2 << 2 | 1, 0xfc, 1}))) << "the same entry twice";
  EXPECT_FALSE(unpacks(bins, bytes({8, 1 << 2 | 1, 0xfc, 1}))) << "out of order";
  EXPECT_FALSE(unpacks(bins, bytes({8, 0xfc, 0xfc, 1}))) << "an empty bin that is not empty";
  EXPECT_FALSE(unpacks(bins, bytes({8, 199, 0xfd, 1}))) << "an empty bin with a sign or an end";
  EXPECT_FALSE(unpacks({600, 500}, bytes({1, 0, 0xfc}))) << "half a word";
}

// Whatever the bytes are, nothing is read or named that is not there.
TEST(Ternary, RandomBytesAreRefusedOrGiveEntriesOfTheTensor) {
  std::mt19937 random(2);
  for (int round = 0; round < 20000; ++round) {
    const Bins bins{static_cast<std::int64_t>(random() % 200),
                    static_cast<std::int64_t>(1 + random() % 100)};
    std::vector<std::byte> message(random() % 12);
    for (std::byte& one : message) one = static_cast<std::byte>(random() % 256);
    std::vector<Ternary> entries;
    if (!unpack(bins, message, entries)) continue;
    for (std::size_t i = 0; i < entries.size(); ++i) {
      ASSERT_LT(entries[i].position, bins.length);
      if (i > 0) {
        ASSERT_LT(entries[i - 1].position, entries[i].position);
      }
    }
    ASSERT_EQ(packed(bins, entries), message) << "only what pack() makes is taken";
  }
}

}  // namespace
}  // namespace scalecom::wire
