#include "scalecom/plan/kernels.h"

#include <gtest/gtest.h>

#include "scalecom/core/error.h"

namespace scalecom::plan {
namespace {

Kernels some() {
  return {"a device",
          "a test",
          {{"scalecom,rate=100,select=chunk", 4e6, 4},
           {"scalecom,rate=100,select=chunk", 1e6, 2.5},
           {"scalecom,rate=400,select=chunk", 1e6, 2},
           {"scalecom,rate=100,select=exact", 1e6, 9},
           {"topk", 2e6, 6}}};
}

TEST(Kernels, LieOnALineThroughWhatWasMeasured) {
  const Kernels kernels = some();
  const auto at = [&](double elements) {
    return kernels.seconds("scalecom,rate=100,beta=1,select=chunk", elements).value();
  };
  EXPECT_DOUBLE_EQ(at(1e6), 2.5);
  EXPECT_DOUBLE_EQ(at(2e6), 3);
  EXPECT_DOUBLE_EQ(at(4e6), 4);
  EXPECT_DOUBLE_EQ(at(8e6), 8);
  EXPECT_DOUBLE_EQ(at(1e3), 2.5 - 0.4995);
  EXPECT_DOUBLE_EQ(at(0), 0);
  EXPECT_DOUBLE_EQ(kernels.seconds("topk,rate=7", 1e6).value(), 3);
}

// What grows faster than the elements would take nothing, or less, of few.
TEST(Kernels, OfFewElementsTakeNoLessThanInProportion) {
  const Kernels kernels("a device", "a test", {{"topk", 1e6, 0.2}, {"topk", 4e6, 1.2}});
  EXPECT_DOUBLE_EQ(kernels.seconds("topk", 4e5).value(), 0.08);
  EXPECT_DOUBLE_EQ(kernels.seconds("topk", 1e3).value(), 0.2e-3);
  EXPECT_DOUBLE_EQ(kernels.seconds("topk", 2e6).value(), 0.2 + 1.0 / 3);
}

TEST(Kernels, OfTheNearestRateAndTheSameOptions) {
  const Kernels kernels = some();
  EXPECT_DOUBLE_EQ(kernels.seconds("scalecom,rate=300,select=chunk", 1e6).value(), 2);
  EXPECT_DOUBLE_EQ(kernels.seconds("scalecom,rate=150,select=chunk", 1e6).value(), 2.5);
  EXPECT_DOUBLE_EQ(kernels.seconds("scalecom,rate=300,select=exact", 1e6).value(), 9);
}

TEST(Kernels, AreNotGuessed) {
  const Kernels kernels = some();
  EXPECT_FALSE(kernels.seconds("scalecom,rate=100,select=random", 1e6).has_value());
  EXPECT_FALSE(kernels.seconds("powersgd,rank=4", 1e6).has_value());
  EXPECT_EQ(kernels.seconds("dense", 1e6), 0);
}

TEST(Kernels, StoredOnesHaveADeviceAndASource) {
  for (const std::string& name : stored_kernels()) {
    const Kernels kernels = stored_kernels_of(name);
    EXPECT_FALSE(kernels.device().empty());
    EXPECT_NE(kernels.source().find("docs/"), std::string::npos);
    EXPECT_TRUE(kernels.seconds("scalecom,rate=100,select=chunk", 25e6).has_value()) << name;
  }
  EXPECT_THROW(stored_kernels_of("abacus"), core::UsageError);
}

}  // namespace
}  // namespace scalecom::plan
