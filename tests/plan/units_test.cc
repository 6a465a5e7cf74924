#include "scalecom/plan/units.h"

#include <gtest/gtest.h>

#include "scalecom/core/error.h"

namespace scalecom::plan {
namespace {

TEST(Units, BandwidthsAsPeopleWriteThem) {
  for (const char* text : {"10Gbps", "10Gb/s", "10Gbit/s", "10 Gbit/s", "1.25GB/s", "1250MB/s",
                           "0.01Tbps", "1e1Gbit", "10000Mbit"}) {
    EXPECT_DOUBLE_EQ(parse_bandwidth(text, "x"), 1.25e9) << text;
  }
  EXPECT_DOUBLE_EQ(parse_bandwidth("100Mbit/s", "x"), 12.5e6);
  EXPECT_DOUBLE_EQ(parse_bandwidth("8b/s", "x"), 1);
}

TEST(Units, SecondsAndBytes) {
  EXPECT_DOUBLE_EQ(parse_seconds("80ms", "x"), 0.08);
  EXPECT_DOUBLE_EQ(parse_seconds("5us", "x"), 5e-6);
  EXPECT_DOUBLE_EQ(parse_seconds("0s", "x"), 0);
  EXPECT_DOUBLE_EQ(parse_bytes("25MB", "x"), 25e6);
  EXPECT_DOUBLE_EQ(parse_bytes("1MiB", "x"), 1048576);
}

TEST(Units, OthersAreRefusedWithTheFormsThatAreRead) {
  for (const char* text : {"", "10", "fast", "10Gb", "10GX/s", "Gbit/s", "0Gbit/s", "-1Gbit/s",
                           "nanGbit/s", "infGbit/s", "10Gbit/s/s", "1e400Gbit/s",
                           "1e300Tbit/s"}) {
    try {
      parse_bandwidth(text, "--bandwidth");
      FAIL() << text;
    } catch (const core::UsageError& error) {
      const std::string what = error.what();
      EXPECT_NE(what.find("--bandwidth"), std::string::npos) << what;
      EXPECT_NE(what.find("1.25GB/s"), std::string::npos) << what;
    }
  }
  for (const char* text : {"", "80", "80Gb", "-1ms"}) {
    EXPECT_THROW(parse_seconds(text, "x"), core::UsageError) << text;
  }
  for (const char* text : {"", "25", "0MB", "-1MB", "25Mbit", "1e308GiB"}) {
    EXPECT_THROW(parse_bytes(text, "x"), core::UsageError) << text;
  }
}

TEST(Units, BandwidthsAreShownInBytesAndBits) {
  EXPECT_EQ(bandwidth_text(1.25e9), "1.25 GB/s (10 Gbit/s)");
  EXPECT_EQ(bandwidth_text(12.5e6), "12.5 MB/s (100 Mbit/s)");
}

}  // namespace
}  // namespace scalecom::plan
