#include "scalecom/core/utf8.h"

#include <gtest/gtest.h>

namespace scalecom::core {
namespace {

TEST(Utf8, TakesCharactersOfEveryLength) {
  EXPECT_TRUE(is_utf8(""));
  EXPECT_TRUE(is_utf8("a \xC3\xA9 \xE2\x82\xAC \xF0\x9F\x98\x80\n"));
}

TEST(Utf8, RefusesWhatIsNoCharacter) {
  EXPECT_FALSE(is_utf8("caf\xE9"));          // ISO 8859-1
  EXPECT_FALSE(is_utf8("caf\xE9 au lait"));  // its é is followed by no rest of a character
  EXPECT_FALSE(
      is_utf8("\xFF\xFE"
              "a"));                          // UTF-16
  EXPECT_FALSE(is_utf8("\xC0\xAF"));          // overlong
  EXPECT_FALSE(is_utf8("\xED\xA0\x80"));      // a surrogate
  EXPECT_FALSE(is_utf8("\xF4\x90\x80\x80"));  // beyond U+10FFFF
  EXPECT_FALSE(is_utf8("\xE2\x82"));          // cut short
}

}  // namespace
}  // namespace scalecom::core
