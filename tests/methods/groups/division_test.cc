#include "scalecom/methods/groups/division.h"

#include <gtest/gtest.h>

#include <map>
#include <set>

#include "scalecom/core/text.h"

namespace scalecom::methods::groups {
namespace {

const layout::Layout kBucket({{"a", 0, 1003, 10, {17, 59}},
                              {"b", 1003, 1, 1},
                              {"c", 1004, 0, 1},
                              {"d", 1004, 64, 1, {64}},
                              {"e", 1068, 25, 10, {5, 5}}});

std::int64_t chunk(const layout::Slice& slice) {
  return slice.dense() ? 1 : 10;
}

TEST(Division, EveryElementHasOneMember) {
  for (const int members : {1, 2, 3, 8, 50}) {
    const Division division(kBucket, members, chunk);
    std::vector<int> seen(static_cast<std::size_t>(kBucket.elements()), 0);
    std::set<std::int64_t> places;
    for (const kernels::Piece& piece : division.pieces()) {
      for (std::int64_t i = 0; i < piece.count; ++i) {
        ++seen[static_cast<std::size_t>(piece.in_gradient + i)];
        EXPECT_TRUE(places.insert(piece.in_pieces + i).second);
        EXPECT_LT(piece.in_pieces % division.slot() + i, division.slot() - 1) << "the mark's room";
      }
    }
    for (const int count : seen) EXPECT_EQ(count, 1);
    std::int64_t elements = 0;
    for (int m = 0; m < members; ++m) elements += division.layout_of(m).elements();
    EXPECT_EQ(elements, kBucket.elements());
  }
}

TEST(Division, ChunksStayWhole) {
  const Division division(kBucket, 3, chunk);
  for (int m = 0; m < 3; ++m) {
    for (const layout::Slice& part : division.layout_of(m).slices()) {
      if (part.dense()) continue;
      EXPECT_EQ(part.first % 10, 0) << part.key();
      const std::int64_t whole = part.name == "a" ? 1003 : 25;
      EXPECT_TRUE(part.length % 10 == 0 || part.first + part.length == whole) << part.key();
      EXPECT_EQ(part.rate, 10);
    }
  }
}

TEST(Division, APartDependsOnItsTensorAlone) {
  const layout::Layout other({{"e", 0, 25, 10, {5, 5}}, {"a", 25, 1003, 10, {17, 59}}});
  const Division one(kBucket, 4, chunk);
  const Division two(other, 4, chunk);
  for (int m = 0; m < 4; ++m) {
    std::map<std::string, std::string> keys;
    for (const layout::Slice& part : one.layout_of(m).slices()) keys[part.name] = part.key();
    for (const layout::Slice& part : two.layout_of(m).slices()) {
      EXPECT_EQ(part.key(), keys[part.name]);
    }
  }
}

// As of ranks that have a part of each tensor.
TEST(Division, PartsOfPartsAreCountedFromTheTensorsBegin) {
  const layout::Layout rows({{"a", 0, 200, 10, {40, 10}, 120}, {"b", 200, 30, 1, {60}, 30}});
  const Division division(rows, 3, chunk);
  std::vector<int> seen(230, 0);
  for (int m = 0; m < 3; ++m) {
    for (const layout::Slice& part : division.layout_of(m).slices()) {
      const std::int64_t begin = part.name == "a" ? 120 : 30;
      const std::int64_t offset = part.name == "a" ? 0 : 200;
      for (std::int64_t i = 0; i < part.length; ++i) {
        ++seen.at(static_cast<std::size_t>(offset + part.first - begin + i));
      }
    }
  }
  for (const int count : seen) EXPECT_EQ(count, 1);
  for (const kernels::Piece& piece : division.pieces()) {
    EXPECT_GE(piece.in_gradient, 0);
    EXPECT_LE(piece.in_gradient + piece.count, 230);
  }
}

TEST(Division, MembersHaveAboutTheSame) {
  std::vector<layout::Slice> slices;
  std::int64_t offset = 0;
  for (int i = 0; i < 200; ++i) {
    slices.push_back({core::concat("layer", i, ".bias"), offset, 3, 1});
    offset += 3;
  }
  const Division division(layout::Layout(std::move(slices)), 8, chunk);
  EXPECT_LT(division.slot(), 2 * offset / 8) << "short tensors do not all begin with one member";
}

}  // namespace
}  // namespace scalecom::methods::groups
