#include "scalecom/plan/kernels.h"

#include <gtest/gtest.h>

#include "scalecom/core/error.h"
#include "scalecom/methods/method.h"

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
  // In proportion 220 is nearer to 400 than to 100.
  EXPECT_DOUBLE_EQ(kernels.seconds("scalecom,rate=220,select=chunk", 1e6).value(), 2);
}

TEST(Kernels, WithoutARateAreOfAllRates) {
  const Kernels kernels("a device", "a test", {{"topk,rate=100", 1e6, 1}, {"topk", 1e6, 2}});
  EXPECT_DOUBLE_EQ(kernels.seconds("topk,rate=7", 1e6).value(), 2);
}

TEST(Kernels, OfASizeThatWasMeasuredTwiceTheFirstCounts) {
  const Kernels kernels("a device", "a test",
                        {{"topk", 1e6, 1}, {"topk", 1e6, 5}, {"topk", 2e6, 2}});
  EXPECT_DOUBLE_EQ(kernels.seconds("topk", 1.5e6).value(), 1.5);
  EXPECT_DOUBLE_EQ(kernels.seconds("topk", 1e6).value(), 1);
}

TEST(Kernels, AreNotGuessed) {
  const Kernels kernels = some();
  EXPECT_FALSE(kernels.seconds("scalecom,rate=100,select=random", 1e6).has_value());
  EXPECT_FALSE(kernels.seconds("powersgd,rank=4", 1e6).has_value());
  EXPECT_EQ(kernels.seconds("dense", 1e6), 0);
}

// Of other options than those that were measured, the work is another.
TEST(Kernels, StoredOnesSpeakOfTheOptionsThatWereMeasured) {
  const auto knows = [](const char* device, const std::string& spec) {
    const std::string all = methods::make(spec)->spec();
    return stored_kernels_of(device).seconds(all, 1e6).has_value();
  };
  for (const char* const spec : {"half", "weighted", "scalecom,beta=0.3,rate=50", "topk,rate=10"}) {
    EXPECT_TRUE(knows("h200", spec)) << spec;
    EXPECT_TRUE(knows("epyc", spec)) << spec;
  }
  for (const char* const spec : {"adacomp", "sketched_sgd", "sketched_sgd,rate=50"}) {
    EXPECT_TRUE(knows("epyc", spec)) << spec;
  }
  for (const char* const spec :
       {"half,values=bf16", "weighted,select=exact", "scalecom,select=random", "powersgd"}) {
    EXPECT_FALSE(knows("h200", spec)) << spec;
  }
  for (const char* const spec : {"sketched_sgd,rows=9", "adacomp,bin=50"}) {
    EXPECT_FALSE(knows("epyc", spec)) << spec;
  }
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
