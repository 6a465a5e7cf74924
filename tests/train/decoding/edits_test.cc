#include "train/decoding/edits.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

namespace train::decoding {
namespace {

using Words = std::vector<int>;

TEST(EditsTest, CountsTheFewest) {
  EXPECT_EQ(edits(Words{}, Words{}), 0);
  EXPECT_EQ(edits(Words{1, 2, 3}, Words{}), 3);
  EXPECT_EQ(edits(Words{}, Words{1, 2}), 2);
  EXPECT_EQ(edits(Words{1, 2, 3}, Words{1, 2, 3}), 0);
  EXPECT_EQ(edits(Words{1, 2, 3}, Words{1, 9, 3}), 1);
  EXPECT_EQ(edits(Words{1, 2, 3}, Words{2, 3}), 1);
  EXPECT_EQ(edits(Words{1, 2, 3}, Words{1, 1, 2, 3}), 1);
  EXPECT_EQ(edits(Words{1, 2, 3, 4}, Words{2, 3, 4, 5}), 2);
}

/// Its definition, by trying all ways.
std::int64_t plain(std::span<const int> a, std::span<const int> b) {
  if (a.empty() || b.empty()) return static_cast<std::int64_t>(a.size() + b.size());
  const auto rest_a = a.subspan(1);
  const auto rest_b = b.subspan(1);
  return std::min(
      {plain(rest_a, rest_b) + (a[0] == b[0] ? 0 : 1), plain(rest_a, b) + 1, plain(a, rest_b) + 1});
}

TEST(EditsTest, IsItsDefinition) {
  for (int i = 0; i < 200; ++i) {
    Words a;
    Words b;
    for (int j = 0; j < i % 6; ++j) a.push_back(i * (j + 3) % 7 % 3);
    for (int j = 0; j < i / 6 % 6; ++j) b.push_back(i * (j + 1) % 11 % 3);
    EXPECT_EQ(edits(a, b), plain(a, b));
  }
}

}  // namespace
}  // namespace train::decoding
