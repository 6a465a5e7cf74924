#include "train/runs/json.h"

#include <gtest/gtest.h>

#include <limits>
#include <nlohmann/json.hpp>

#include "scalecom/core/error.h"
#include "tests/train/folder.h"

namespace train::runs {
namespace {

using nlohmann::ordered_json;
using scalecom::core::UsageError;

std::string nested(int depth) {
  const auto many = static_cast<std::size_t>(depth);
  return std::string(many, '[') + std::string(many, ']');
}

TEST(JsonTest, TakesWhatIsJson) {
  EXPECT_EQ(parse_json(R"({"b": [1, 2.5, "x"], "a": null})")->dump(),
            R"({"b":[1,2.5,"x"],"a":null})");
  for (const char* text : {"", "{", "1 2", "{\"a\": 01}", "\xff", "1e999"}) {
    EXPECT_FALSE(parse_json(text)) << text;
  }
}

TEST(JsonTest, RefusesWhatIsDeeperThanAnythingWritten) {
  EXPECT_TRUE(parse_json(nested(32)));
  for (const int depth : {34, 1000, 1'000'000}) EXPECT_FALSE(parse_json(nested(depth))) << depth;
}

TEST(JsonTest, AFileComesBack) {
  const Folder folder;
  write_json(folder / "one.json", {{"a", 1}});
  EXPECT_EQ(read_json(folder / "one.json")["a"], 1);
  EXPECT_NE(message_of<UsageError>([&] { read_json(folder / "two.json"); }).find("two.json"),
            std::string::npos);
}

TEST(JsonTest, WholeNumbersAreNoOthers) {
  constexpr auto kMost = std::numeric_limits<std::int64_t>::max();
  EXPECT_EQ(whole_number(ordered_json::parse("7"), 0, 7), 7);
  EXPECT_EQ(whole_number(ordered_json::parse("-7"), -7, 0), -7);
  EXPECT_EQ(whole_number(ordered_json::parse(R"({"a": 7})"), "a", 0, 7), 7);
  EXPECT_EQ(whole_number(ordered_json::parse("9223372036854775807"), 0, kMost), kMost);
  EXPECT_FALSE(is_whole_number(ordered_json::parse("2"), 3, 7));
  for (const char* text : {"8", "-1", "2.0", "1e3", "true", "\"3\"", "null", "[3]",
                           "18446744073709551615", "4294967299"}) {
    EXPECT_FALSE(is_whole_number(ordered_json::parse(text), 0, 7)) << text;
    EXPECT_THROW(whole_number(ordered_json::parse(text), 0, 7), UsageError) << text;
  }
}

}  // namespace
}  // namespace train::runs
