#include "train/data/text_pairs.h"

#include <gtest/gtest.h>

#include <fstream>

#include "scalecom/core/error.h"
#include "tests/train/folder.h"

namespace train::data {
namespace {

using scalecom::core::UsageError;
using Lines = std::vector<std::string>;

struct Files {
  Folder folder;

  Files(const std::string& source, const std::string& target) {
    std::ofstream(folder / "a.en", std::ios::binary) << source;
    std::ofstream(folder / "a.de", std::ios::binary) << target;
  }
  TextPairs read() const { return read_text_pairs(folder / "a.en", folder / "a.de"); }
  std::string error() const {
    return message_of<UsageError>([&] { read(); });
  }
};

TEST(TextPairsTest, GivesTheLinesOfBoth) {
  const TextPairs pairs = Files("one\ntwo\n", "eins\nzwei").read();
  EXPECT_EQ(pairs.source, (Lines{"one", "two"}));
  EXPECT_EQ(pairs.target, (Lines{"eins", "zwei"}));
}

TEST(TextPairsTest, TakesLinesOfOtherSystems) {
  EXPECT_EQ(Files("one\r\n\r\n", "eins\n\n").read().source, (Lines{"one", ""}));
}

TEST(TextPairsTest, RefusesUnequalNumbersOfLines) {
  const std::string message = Files("one\ntwo\n", "eins\n").error();
  EXPECT_NE(message.find("a.de has 1 lines"), std::string::npos) << message;
  EXPECT_NE(message.find("a.en 2"), std::string::npos) << message;
}

TEST(TextPairsTest, RefusesWhatIsNotUtf8) {
  const std::string message = Files("one\ncoffee\n", "eins\nCaf\xE9\n").error();
  EXPECT_NE(message.find("a.de is not UTF-8: see line 2"), std::string::npos) << message;
}

TEST(TextPairsTest, RefusesEmptyAndMissingFiles) {
  EXPECT_NE(Files("one\n", "").error().find("a.de is empty"), std::string::npos);
  const std::string message =
      message_of<UsageError>([] { read_text_pairs("/nowhere/a.en", "/nowhere/a.de"); });
  EXPECT_NE(message.find("/nowhere/a.en is missing"), std::string::npos);
}

}  // namespace
}  // namespace train::data
