#include "scalecom/core/options.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "scalecom/core/error.h"

namespace scalecom::core {
namespace {

using Settings = std::vector<std::pair<std::string, std::string>>;

template <typename Call>
std::string refusal(Call&& call) {
  try {
    call();
  } catch (const UsageError& error) {
    return error.what();
  }
  return "";
}

TEST(OptionString, TakesTheTextApart) {
  const OptionString parsed =
      OptionString::parse("scalecom,rate=100,select=chunk:64,rates=a*:4;b:1");
  EXPECT_EQ(parsed.name, "scalecom");
  EXPECT_EQ(parsed.settings,
            (Settings{{"rate", "100"}, {"select", "chunk:64"}, {"rates", "a*:4;b:1"}}));
}

TEST(OptionString, NameAloneAndEmptyValues) {
  EXPECT_EQ(OptionString::parse("dense").name, "dense");
  EXPECT_TRUE(OptionString::parse("dense").settings.empty());
  EXPECT_EQ(OptionString::parse("").name, "");
  EXPECT_EQ(OptionString::parse("a,b=").settings, (Settings{{"b", ""}}));
  EXPECT_EQ(OptionString::parse("a,b=c=d").settings, (Settings{{"b", "c=d"}}));
}

TEST(OptionString, RefusesWhatIsNotKeyAndValue) {
  for (const char* text : {"a,b", "a,", "a,=3", "a,b=1,,c=2"}) {
    EXPECT_NE(refusal([&] { OptionString::parse(text); }).find("key=value"), std::string::npos)
        << text;
  }
  const std::string twice = refusal([] { OptionString::parse("a,b=1,c=2,b=3"); });
  EXPECT_NE(twice.find("'b' stands twice"), std::string::npos) << twice;
}

class Table : public testing::Test {
 protected:
  Table() {
    table.number("beta", &beta, 0, OptionTable::Bound::kOpen, 1);
    table.number("rate", &rate, 1, OptionTable::Bound::kClosed);
    table.integer("warmup", &warmup, 0);
    table.integer("rank", &rank, 1, 16);
    table.choice("values", &values, {"fp32", "bf16"});
    table.custom(
        "pair", "two letters",
        [this](const std::string& text) -> std::function<void()> {
          if (text.size() != 2) throw UsageError("it has another length");
          return [this, text] { pair = text; };
        },
        [this] { return pair; });
  }

  OptionTable table{"thing"};
  double beta = 1;
  double rate = 100;
  std::int64_t warmup = 0;
  std::int64_t rank = 4;
  int values = 0;
  std::string pair = "ab";
};

TEST_F(Table, SetsEveryKind) {
  table.read(
      {{"beta", "0.1"}, {"rate", "1e2"}, {"warmup", "7"}, {"values", "bf16"}, {"pair", "xy"}});
  EXPECT_EQ(beta, 0.1);
  EXPECT_EQ(rate, 100);
  EXPECT_EQ(warmup, 7);
  EXPECT_EQ(values, 1);
  EXPECT_EQ(pair, "xy");
  EXPECT_EQ(table.text(), "beta=0.1,rate=100,warmup=7,rank=4,values=bf16,pair=xy");
}

TEST_F(Table, TextReadsBack) {
  beta = 0.30000000000000004;
  rate = 33.3;
  const std::string text = table.text();
  beta = rate = 1;
  table.read(OptionString::parse("thing," + text).settings);
  EXPECT_EQ(table.text(), text);
  EXPECT_EQ(beta, 0.30000000000000004);
}

TEST_F(Table, BoundsAreAsDeclared) {
  EXPECT_EQ(refusal([&] { table.read({{"beta", "1"}}); }), "");
  EXPECT_EQ(refusal([&] { table.read({{"rate", "1"}}); }), "");
  EXPECT_EQ(refusal([&] { table.read({{"rank", "1"}}); }), "");
  EXPECT_EQ(refusal([&] { table.read({{"rank", "16"}}); }), "");
  const Settings refused{{"beta", "0"},
                         {"beta", "1.0001"},
                         {"beta", "-0.1"},
                         {"beta", "nan"},
                         {"beta", ""},
                         {"beta", "0.5x"},
                         {"beta", " 0.5"},
                         {"rate", "0.999"},
                         {"rate", "inf"},
                         {"rate", "1e999"},
                         {"rate", "0x10"},
                         {"warmup", "-1"},
                         {"warmup", "1.5"},
                         {"warmup", "1e3"},
                         {"rank", "0"},
                         {"rank", "17"},
                         {"rank", "99999999999999999999"},
                         {"values", "fp16"},
                         {"values", ""},
                         {"pair", "abc"}};
  for (const auto& setting : refused) {
    const std::string message = refusal([&] { table.read({setting}); });
    EXPECT_NE(message.find("[thing] " + setting.first + "=" + setting.second + " is not allowed"),
              std::string::npos)
        << message;
  }
  EXPECT_EQ(table.text(), "beta=1,rate=1,warmup=0,rank=16,values=fp32,pair=ab");
}

TEST_F(Table, MessagesSayWhatIsAllowed) {
  const auto message = [&](const char* key) { return refusal([&] { table.read({{key, "?"}}); }); };
  EXPECT_NE(message("beta").find("beta=<a number in (0, 1]>"), std::string::npos);
  EXPECT_NE(message("rate").find("rate=<a number from 1 on>"), std::string::npos);
  EXPECT_NE(message("warmup").find("warmup=<a whole number from 0 on>"), std::string::npos);
  EXPECT_NE(message("rank").find("rank=<a whole number in [1, 16]>"), std::string::npos);
  EXPECT_NE(message("values").find("values=<fp32 | bf16>"), std::string::npos);
  EXPECT_NE(message("pair").find("it has another length"), std::string::npos);
  EXPECT_NE(message("pair").find("pair=<two letters>"), std::string::npos);
}

TEST_F(Table, UnknownKeysAreRefusedWithTheKnownOnes) {
  const std::string message = refusal([&] { table.read({{"gamma", "1"}}); });
  EXPECT_NE(message.find("[thing] no option 'gamma'"), std::string::npos) << message;
  for (const char* key : {"beta=<", "rate=<", "warmup=<", "rank=<", "values=<", "pair=<"}) {
    EXPECT_NE(message.find(key), std::string::npos) << key;
  }
  const OptionTable none("bare");
  EXPECT_NE(refusal([&] { none.read({{"x", "1"}}); }).find("allowed: none"), std::string::npos);
  EXPECT_EQ(none.text(), "");
}

TEST_F(Table, AllOrNothing) {
  const std::string before = table.text();
  EXPECT_THROW(table.read({{"beta", "0.5"}, {"pair", "zz"}, {"rank", "99"}}), UsageError);
  EXPECT_EQ(table.text(), before);
  EXPECT_THROW(table.read({{"beta", "0.5"}, {"nothing", "1"}}), UsageError);
  EXPECT_EQ(table.text(), before);
}

}  // namespace
}  // namespace scalecom::core
