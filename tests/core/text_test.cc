#include "scalecom/core/text.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <limits>
#include <locale>
#include <random>
#include <string>
#include <vector>

namespace scalecom::core {
namespace {

TEST(Text, ConcatPrintsItsArguments) {
  EXPECT_EQ(concat("a", 1, ' ', 2.5, std::string("b")), "a1 2.5b");
}

TEST(Text, JoinPutsSeparatorsBetween) {
  EXPECT_EQ(join(std::vector<int>{}), "");
  EXPECT_EQ(join(std::vector<int>{1}), "1");
  EXPECT_EQ(join(std::vector<int>{1, 2, 3}), "1, 2, 3");
  EXPECT_EQ(join(std::vector<std::string>{"a", "b"}, " | "), "a | b");
}

// A program that sets a locale with separators must not change option texts or file headers.
TEST(Text, DoesNotFollowTheProgramsLocale) {
  struct Grouped : std::numpunct<char> {
    char do_thousands_sep() const override { return '.'; }
    std::string do_grouping() const override { return "\3"; }
  };
  const std::locale before = std::locale::global(std::locale(std::locale(), new Grouped));
  EXPECT_EQ(concat(1234567), "1234567");
  EXPECT_EQ(join(std::vector<int>{1234567}), "1234567");
  std::locale::global(before);
}

TEST(Text, SplitKeepsEmptyPieces) {
  using Pieces = std::vector<std::string>;
  EXPECT_EQ(split("", ','), Pieces{""});
  EXPECT_EQ(split("a", ','), Pieces{"a"});
  EXPECT_EQ(split("a,,b,", ','), (Pieces{"a", "", "b", ""}));
}

TEST(Text, ShortestReadsBackAsTheSameNumber) {
  EXPECT_EQ(shortest(100), "100");
  EXPECT_EQ(shortest(0.1), "0.1");
  EXPECT_EQ(shortest(1e300), "1e+300");
  std::mt19937_64 random(1);
  std::uniform_real_distribution<double> uniform(-1e6, 1e6);
  for (int i = 0; i < 1000; ++i) {
    const double number = uniform(random);
    ASSERT_EQ(std::strtod(shortest(number).c_str(), nullptr), number);
  }
  const double longest = -std::numeric_limits<double>::denorm_min() * 4503599627370497.0;
  EXPECT_EQ(std::strtod(shortest(longest).c_str(), nullptr), longest);
}

}  // namespace
}  // namespace scalecom::core
