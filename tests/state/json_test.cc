#include "scalecom/state/json.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

namespace scalecom::state {
namespace {

std::string unquoted(const std::string& text) {
  JsonCursor json(text);
  std::string out = json.string();
  json.end();
  return out;
}

TEST(JsonCursor, ReadsObjectsAndArrays) {
  JsonCursor json(" { \"a\" : [ 1 , 2,30 ] , \"b\":[],\"c\":{}, \"d\" : \"x\" }\r\n\t ");
  std::vector<std::string> seen;
  json.object([&](const std::string& key) {
    seen.push_back(key);
    if (key == "a" || key == "b") {
      json.array([&] { seen.push_back(std::to_string(json.whole_number())); });
    } else if (key == "c") {
      json.object([](const std::string&) { FAIL(); });
    } else {
      seen.push_back(json.string());
    }
  });
  json.end();
  EXPECT_EQ(seen, (std::vector<std::string>{"a", "1", "2", "30", "b", "c", "d", "x"}));
}

TEST(JsonCursor, RefusesBrokenObjects) {
  for (const char* text :
       {"", "{", "}", "[", "{\"a\"}", "{\"a\":}", "{\"a\":\"b\"", "{\"a\":\"b\",}", "{,}",
        "{\"a\":\"b\"}}", "{\"a\":\"b\"} x", "{a:\"b\"}", "{\"a\" \"b\"}", "{\"a\":1}",
        "{\"a\":null}", "{\"a\":\"b\" \"c\":\"d\"}"}) {
    JsonCursor json(text);
    EXPECT_THROW(
        {
          json.object([&](const std::string&) { json.string(); });
          json.end();
        },
        JsonError)
        << text;
  }
}

TEST(JsonCursor, Numbers) {
  const auto read = [](const std::string& text) {
    JsonCursor json(text);
    const double number = json.number();
    json.end();
    return number;
  };
  EXPECT_EQ(read("0"), 0);
  EXPECT_EQ(read(" -12.5e-1 "), -1.25);
  EXPECT_EQ(read("1E+3"), 1000);
  EXPECT_EQ(read("0.5"), 0.5);
  for (const char* text : {"", "-", "+1", "01", "-01", ".5", "5.", "5.e1", "1e", "1e+", "1e999",
                           "x", "nan", "inf", "0x1", "1 2", "--1", "1-1", "\"1\""}) {
    EXPECT_THROW(read(text), JsonError) << text;
  }
}

TEST(JsonCursor, WholeNumbers) {
  const auto read = [](const std::string& text) {
    JsonCursor json(text);
    const std::int64_t number = json.whole_number();
    json.end();
    return number;
  };
  EXPECT_EQ(read("0"), 0);
  EXPECT_EQ(read(" 120 "), 120);
  EXPECT_EQ(read("9223372036854775807"), INT64_MAX);
  for (const char* text : {"", "-1", "-0", "+1", "01", "00", "1.0", "1e3", "9223372036854775808",
                           "99999999999999999999999", "x", "\"1\"", "1 2", "0x1"}) {
    EXPECT_THROW(read(text), JsonError) << text;
  }
}

TEST(JsonCursor, EscapesAreUndone) {
  EXPECT_EQ(unquoted(R"("a\"b\\c\/d\b\f\n\r\t")"), "a\"b\\c/d\b\f\n\r\t");
  EXPECT_EQ(unquoted(R"("\u0041\u00e9\u20ac\uFFFD")"), "A\u00e9\u20ac\uFFFD");
  EXPECT_EQ(unquoted(R"("\ud83d\ude00\uDBFF\uDFFF")"), "\U0001F600\U0010FFFF");
  EXPECT_EQ(unquoted(R"("a\u0000b")"), std::string("a\0b", 3));
}

TEST(JsonCursor, RefusesBrokenStrings) {
  for (const char* text :
       {R"(")", R"("a)", R"("\)", R"("\")", R"("\x")", R"("\u12")", R"("\u12G4")", R"("\ud83d")",
        R"("\ud83dx")", R"("\ud83d\n")", R"("\ud83d\u0041")", R"("\ud83d\ud83d")",
        R"("\ud83d\ue000")", R"("\ude00")", "\"a\nb\"", "\"a\tb\"", "'a'"}) {
    EXPECT_THROW(unquoted(text), JsonError) << text;
  }
}

// Overlong, cut off, without a lead, surrogates, beyond the last character, never valid.
const std::vector<std::string> kNotUtf8{"\xc0\xaf",
                                        "\xe0\x80\xaf",
                                        "\xf0\x80\x80\xaf",
                                        "\xc3",
                                        "\xe2\x82",
                                        "\x80",
                                        "\xed\xa0\x80",
                                        "\xff",
                                        "\xf4\x90\x80\x80",
                                        "\xf8\x88\x80\x80\x80",
                                        "\xc3("};

TEST(JsonCursor, RefusesWhatIsNotUtf8) {
  for (const std::string& text : kNotUtf8) {
    EXPECT_THROW(unquoted("\"" + text + "\""), JsonError);
    EXPECT_THROW(json_quoted(text), JsonError);
    EXPECT_THROW(json_quoted("a" + text), JsonError);
  }
}

TEST(JsonCursor, MessagesSayWhere) {
  try {
    JsonCursor json("  5");
    json.string();
    FAIL();
  } catch (const JsonError& error) {
    EXPECT_STREQ(error.what(), "byte 2: a string was expected");
  }
}

TEST(JsonQuoted, EscapesWhatItMustAndNothingElse) {
  EXPECT_EQ(json_quoted(""), "\"\"");
  EXPECT_EQ(json_quoted("a/b \u00e9\u20ac\U0001F600\x7f"), "\"a/b \u00e9\u20ac\U0001F600\x7f\"");
  EXPECT_EQ(json_quoted("\"\\\b\f\n\r\t"), R"("\"\\\b\f\n\r\t")");
  EXPECT_EQ(json_quoted(std::string("\0\x01\x1f", 3)), R"("\u0000\u0001\u001f")");
}

TEST(JsonQuoted, ReadsBack) {
  std::string all;
  for (char32_t code = 0; code < 0x110000; code = code < 0x900 ? code + 1 : code + 97) {
    if (code >= 0xd800 && code < 0xe000) continue;
    char hex[16];
    std::string escaped = "\"";
    const auto add = [&](unsigned unit) {
      std::snprintf(hex, sizeof hex, "\\u%04x", unit);
      escaped += hex;
    };
    if (code < 0x10000) {
      add(static_cast<unsigned>(code));
    } else {
      add(static_cast<unsigned>(0xd800 + ((code - 0x10000) >> 10)));
      add(static_cast<unsigned>(0xdc00 + ((code - 0x10000) & 0x3ff)));
    }
    const std::string character = unquoted(escaped + "\"");
    ASSERT_EQ(unquoted(json_quoted(character)), character);
    all += character;
  }
  EXPECT_EQ(unquoted(json_quoted(all)), all);
}

}  // namespace
}  // namespace scalecom::state
