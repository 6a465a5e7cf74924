#include "scalecom/wire/offsets.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <random>
#include <vector>

namespace scalecom::wire {
namespace {

layout::Cut cut_of(std::int64_t length, std::int64_t chunk, std::int64_t keep) {
  layout::Cut cut{length, chunk, keep, 0};
  if (const std::int64_t tail = length % chunk; tail > 0) cut.keep_tail = std::min(keep, tail);
  return cut;
}

// Random ascending positions, `kept` of them in every chunk.
std::vector<std::uint32_t> draw(const layout::Cut& cut, std::mt19937& random) {
  std::vector<std::uint32_t> positions;
  for (std::int64_t c = 0; c < cut.chunks(); ++c) {
    const std::int64_t begin = c * cut.chunk;
    const std::int64_t length = std::min(cut.chunk, cut.length - begin);
    std::vector<std::uint32_t> all;
    for (std::int64_t i = 0; i < length; ++i) all.push_back(static_cast<std::uint32_t>(begin + i));
    std::sample(all.begin(), all.end(), std::back_inserter(positions),
                cut.kept_before(c + 1) - cut.kept_before(c), random);
  }
  return positions;
}

TEST(Offsets, TakeAsManyBitsAsTheChunkNeeds) {
  EXPECT_EQ(offset_bits(1), 0);
  EXPECT_EQ(offset_bits(2), 1);
  EXPECT_EQ(offset_bits(64), 6);
  EXPECT_EQ(offset_bits(65), 7);
  EXPECT_EQ(offset_bits(100), 7);
  EXPECT_EQ(offset_bits(std::int64_t{1} << 32), 32);
  EXPECT_EQ(packed_bytes(256000, 7), 224000);
}

TEST(Offsets, AreLaidOutFromTheLowestBitUp) {
  const layout::Cut cut = cut_of(400, 100, 1);
  const std::vector<std::uint32_t> positions = {1, 102, 203, 399};
  std::vector<std::byte> packed(static_cast<std::size_t>(packed_bytes(cut, 0, 4)));
  ASSERT_EQ(packed.size(), 4U);
  pack(cut, 0, 4, positions.data(), packed);
  const std::uint32_t expected = 1U | 2U << 7 | 3U << 14 | 99U << 21;
  std::uint32_t actual = 0;
  std::memcpy(&actual, packed.data(), 4);
  EXPECT_EQ(actual, expected);
}

TEST(Offsets, ComeBackFromTheirBytes) {
  std::mt19937 random(1);
  for (const std::int64_t chunk : {1, 2, 3, 7, 8, 9, 64, 100, 129, 1000, 70000}) {
    for (const std::int64_t length : {1, 5, 64, 99, 100, 101, 1999, 80001}) {
      for (const std::int64_t keep : {1, 2, 5}) {
        const layout::Cut cut = cut_of(length, chunk, std::min(keep, chunk));
        const std::vector<std::uint32_t> positions = draw(cut, random);
        ASSERT_EQ(static_cast<std::int64_t>(positions.size()), cut.kept());
        std::vector<std::byte> packed(static_cast<std::size_t>(packed_bytes(cut, 0, cut.chunks())),
                                      std::byte{0xff});
        pack(cut, 0, cut.chunks(), positions.data(), packed);
        std::vector<std::uint32_t> back(positions.size(), 0);
        ASSERT_TRUE(unpack(cut, 0, cut.chunks(), packed, back.data()));
        ASSERT_EQ(back, positions) << "chunk " << chunk << " length " << length << " keep " << keep;
      }
    }
  }
}

TEST(Offsets, ARangeOfChunksStandsAlone) {
  std::mt19937 random(2);
  const layout::Cut cut = cut_of(12345, 37, 3);
  const std::vector<std::uint32_t> positions = draw(cut, random);
  std::vector<std::uint32_t> back(positions.size(), 0);
  const std::int64_t edges[] = {0, 1, 50, 51, 200, cut.chunks() - 1, cut.chunks()};
  for (std::size_t i = 0; i + 1 < std::size(edges); ++i) {
    std::vector<std::byte> packed(
        static_cast<std::size_t>(packed_bytes(cut, edges[i], edges[i + 1])));
    pack(cut, edges[i], edges[i + 1], positions.data(), packed);
    ASSERT_TRUE(unpack(cut, edges[i], edges[i + 1], packed, back.data()));
  }
  EXPECT_EQ(back, positions);
}

TEST(Offsets, DamagedBytesAreRefused) {
  const layout::Cut cut = cut_of(250, 100, 1);  // a tail of 50
  std::vector<std::byte> packed(3);
  std::vector<std::uint32_t> back(3);
  const auto set = [&](std::uint32_t a, std::uint32_t b, std::uint32_t c) {
    const std::uint32_t bits = a | b << 7 | c << 14;
    std::memcpy(packed.data(), &bits, 3);
  };
  set(99, 99, 49);
  EXPECT_TRUE(unpack(cut, 0, 3, packed, back.data()));
  set(100, 0, 0);
  EXPECT_FALSE(unpack(cut, 0, 3, packed, back.data()));
  set(0, 0, 50);
  EXPECT_FALSE(unpack(cut, 0, 3, packed, back.data()));

  const layout::Cut two = cut_of(8, 8, 2);
  std::vector<std::byte> pair = {std::byte{3 | 3 << 3}};
  EXPECT_FALSE(unpack(two, 0, 1, pair, back.data())) << "the same entry twice";
  pair = {std::byte{4 | 3 << 3}};
  EXPECT_FALSE(unpack(two, 0, 1, pair, back.data())) << "out of order";
  pair = {std::byte{3 | 4 << 3}};
  EXPECT_TRUE(unpack(two, 0, 1, pair, back.data()));
}

}  // namespace
}  // namespace scalecom::wire
