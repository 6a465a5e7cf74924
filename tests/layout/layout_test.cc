#include "scalecom/layout/layout.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "scalecom/core/error.h"

namespace scalecom::layout {
namespace {

std::string refusal(std::vector<Slice> slices) {
  try {
    const Layout layout(std::move(slices));
  } catch (const core::UsageError& error) {
    return error.what();
  }
  return "";
}

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST(Tensor, ElementsAreTheProductOfTheShape) {
  EXPECT_EQ((Tensor{"scalar", {}}.elements()), 1);
  EXPECT_EQ((Tensor{"a", {7}}.elements()), 7);
  EXPECT_EQ((Tensor{"a", {64, 3, 7, 7}}.elements()), 9408);
  EXPECT_EQ((Tensor{"a", {0, 5}}.elements()), 0);
  const std::int64_t large = std::int64_t{1} << 40;
  EXPECT_EQ((Tensor{"a", {large, large, 0}}.elements()), 0);
}

TEST(Tensor, RefusesSizesThatCannotBe) {
  EXPECT_THROW((Tensor{"a", {2, -1}}.elements()), core::UsageError);
  EXPECT_THROW((Tensor{"a", {0, -1}}.elements()), core::UsageError);
  const std::int64_t large = std::int64_t{1} << 40;
  EXPECT_THROW((Tensor{"a", {large, large}}.elements()), core::UsageError);
}

TEST(Layout, KeepsItsSlices) {
  const Layout layout({{"a", 0, 10, 5}, {"b", 10, 0, 1}, {"c", 10, 1, 1}});
  EXPECT_EQ(layout.elements(), 11);
  ASSERT_EQ(layout.slices().size(), 3U);
  EXPECT_FALSE(layout.slices()[0].dense());
  EXPECT_TRUE(layout.slices()[1].dense());
  EXPECT_EQ(layout.slices()[2].offset, 10);
  EXPECT_EQ(Layout().elements(), 0);
  EXPECT_TRUE(Layout(std::vector<Slice>{}).slices().empty());
}

TEST(Layout, RefusesWhatIsNoLayout) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  EXPECT_TRUE(has(refusal({{"", 0, 1, 1}}), "no name"));
  EXPECT_TRUE(has(refusal({{"a", 0, 1, 1}, {"a", 1, 1, 1}}), "'a' stands twice"));
  EXPECT_TRUE(has(refusal({{"a[0:5]", 0, 5, 1}}), "'a[0:5]', which is how a part of another one"));
  EXPECT_TRUE(has(refusal({{"a", 0, -1, 1}}), "'a' has the length -1"));
  EXPECT_TRUE(has(refusal({{"a", 0, 1, 0.5}}), "'a' has the rate 0.5"));
  EXPECT_TRUE(has(refusal({{"a", 0, 1, kInfinity}}), "rate"));
  EXPECT_TRUE(has(refusal({{"a", 0, 1, std::nan("")}}), "rate"));
  EXPECT_TRUE(has(refusal({{"a", 0, 6, 1, {2, 2}}}), "6 elements from 0 on, and its tensor has 4"));
  EXPECT_TRUE(has(refusal({{"a", 0, 3, 1, {2, 2}, 2}}), "3 elements from 2 on"));
  EXPECT_TRUE(has(refusal({{"a", 0, 3, 1, {2, 2}, -1}}), "begins at element -1"));
  EXPECT_TRUE(has(refusal({{"a", 1, 1, 1}}), "must begin at 0"));
  EXPECT_TRUE(has(refusal({{"a", 0, 5, 1}, {"b", 6, 1, 1}}), "must begin at 5"));
  EXPECT_TRUE(has(refusal({{"a", 0, 5, 1}, {"b", 4, 1, 1}}), "must begin at 5"));
  const std::int64_t most = std::numeric_limits<std::int64_t>::max();
  EXPECT_TRUE(has(refusal({{"a", 0, most, 1}, {"b", most, 1, 1}}), "2^63"));
}

TEST(Layout, FingerprintsTellLayoutsApart) {
  const auto of = [](std::vector<Slice> slices) { return Layout(std::move(slices)).fingerprint(); };
  const std::uint64_t base = of({{"a", 0, 10, 5}, {"b", 10, 5, 1}});
  EXPECT_EQ(base, of({{"a", 0, 10, 5}, {"b", 10, 5, 1}}));
  EXPECT_NE(base, of({{"a", 0, 10, 5}}));
  EXPECT_NE(base, of({{"b", 0, 5, 1}, {"a", 5, 10, 5}}));
  EXPECT_NE(base, of({{"a", 0, 10, 5.5}, {"b", 10, 5, 1}}));
  EXPECT_NE(base, of({{"a", 0, 11, 5}, {"b", 11, 5, 1}}));
  EXPECT_NE(base, of({{"a", 0, 10, 5}, {"c", 10, 5, 1}}));
  EXPECT_NE(of({{"a", 0, 6, 5, {2, 3}}}), of({{"a", 0, 6, 5, {3, 2}}}));
  EXPECT_NE(of({{"a", 0, 2, 5, {2, 3}, 2}}), of({{"a", 0, 2, 5, {2, 3}, 4}}));
  EXPECT_NE(of({{"a", 0, 2, 5, {8, 4}}}), of({{"a", 0, 2, 5, {8}, 4}}));
  EXPECT_NE(of({{"ab", 0, 1, 1}, {"c", 1, 1, 1}}), of({{"a", 0, 1, 1}, {"bc", 1, 1, 1}}));
}

TEST(Layout, PartsOfATensorHaveKeysOfTheirOwn) {
  EXPECT_EQ((Slice{"a", 0, 6, 5}.key()), "a");
  EXPECT_EQ((Slice{"a", 0, 6, 5, {2, 3}}.key()), "a");
  EXPECT_EQ((Slice{"a", 0, 4, 5, {2, 3}}.key()), "a[0:4]");
  EXPECT_EQ((Slice{"a", 0, 2, 5, {2, 3}, 4}.key()), "a[4:6]");
  EXPECT_FALSE((Slice{"a", 0, 2, 5, {2, 3}, 4}.whole()));
}

TEST(Layout, KeysOfPartsAreTakenApart) {
  const auto part = parse_part_key(Slice{"a[1:2]", 0, 2, 5, {2, 3}, 4}.key());
  ASSERT_TRUE(part);
  EXPECT_EQ(part->name, "a[1:2]");
  EXPECT_EQ(part->first, 4);
  EXPECT_EQ(part->end, 6);
  for (const char* whole :
       {"", "a", "a]", "a[]", "a[:]", "a[1]", "a[x:2]", "a[1:2", "a:1[2]", "a[1:]", "a[1:x]",
        "a[-2:2]", "a[3:2]", "a[01:2]", "a[1:+2]", "a[1:9223372036854775808]"}) {
    EXPECT_FALSE(parse_part_key(whole)) << whole;
  }
}

// Ranks on different machines compare it.
TEST(Layout, FingerprintIsWhatItAlwaysWas) {
  const Layout layout({{"fc.weight", 0, 1000, 100}, {"fc.bias", 1000, 10, 1}});
  EXPECT_EQ(layout.fingerprint(), 0x6739fadbbc0f602eULL);
}

}  // namespace
}  // namespace scalecom::layout
