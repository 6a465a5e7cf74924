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
                           "nanGbit/s", "infGbit/s", "10Gbit/s/s", "1e400Gbit/s", "1e300Tbit/s"}) {
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
  EXPECT_EQ(byte_rate_text(1.25e9), "1.25 GB/s");
  EXPECT_EQ(bandwidth_text(1.25e9), "1.25 GB/s (10 Gbit/s)");
  EXPECT_EQ(bandwidth_text(12.5e6), "12.5 MB/s (100 Mbit/s)");
  EXPECT_EQ(bandwidth_text(1000), "1 kB/s (8 kbit/s)");
  EXPECT_EQ(bandwidth_text(0.125), "0.125 B/s (1 bit/s)");
  EXPECT_EQ(bandwidth_text(1.23456e12), "1.23 TB/s (9.88 Tbit/s)");
  EXPECT_EQ(bandwidth_text(2e15), "2000 TB/s (16000 Tbit/s)");
  // What is rounded up to a thousand is one of the next unit.
  EXPECT_EQ(bandwidth_text(124.99e6), "125 MB/s (1 Gbit/s)");
}

TEST(Units, EveryOneHasItsSize) {
  for (const auto& [text, bytes] : {std::pair("1B/s", 1.0),
                                    {"1Bps", 1},
                                    {"8bps", 1},
                                    {"8bits/s", 1},
                                    {"8kbit/s", 1e3},
                                    {"8Kbit/s", 1e3},
                                    {"1kB/s", 1e3},
                                    {"1MB/s", 1e6},
                                    {"1GB/s", 1e9},
                                    {"1TB/s", 1e12}}) {
    EXPECT_DOUBLE_EQ(parse_bandwidth(text, "x"), bytes) << text;
  }
  for (const auto& [text, seconds] :
       {std::pair("2s", 2.0), {"2ms", 2e-3}, {"2us", 2e-6}, {"2ns", 2e-9}}) {
    EXPECT_DOUBLE_EQ(parse_seconds(text, "x"), seconds) << text;
  }
  for (const auto& [text, bytes] : {std::pair("7B", 7.0),
                                    {"7kB", 7e3},
                                    {"7KB", 7e3},
                                    {"7MB", 7e6},
                                    {"7GB", 7e9},
                                    {"7KiB", 7.0 * 1024},
                                    {"7MiB", 7.0 * (1 << 20)},
                                    {"7GiB", 7.0 * (1 << 30)}}) {
    EXPECT_DOUBLE_EQ(parse_bytes(text, "x"), bytes) << text;
  }
}

}  // namespace
}  // namespace scalecom::plan
