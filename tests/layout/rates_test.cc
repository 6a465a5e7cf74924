#include "scalecom/layout/rates.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "scalecom/core/error.h"
#include "scalecom/core/text.h"
#include "scalecom/layout/selection.h"

namespace scalecom::layout {
namespace {

using Kind = RatePolicy::Kind;

RatePolicy policy(const std::string& rates, double rate = 100) {
  RatePolicy made;
  made.rate = rate;
  made.parse_rates(rates);
  return made;
}

template <typename Call>
std::string refusal(Call&& call) {
  try {
    call();
  } catch (const core::UsageError& error) {
    return error.what();
  }
  return "";
}

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

const std::vector<Tensor> kModel{
    {"bn.weight", {64}, 1},          {"conv1.weight", {64, 3, 3, 3}, 500},
    {"conv2.weight", {64, 64}, 300}, {"conv2.bias", {4096}, 300},
    {"fc.weight", {10, 512}, 128},   {"scale", {}, 0},
    {"small", {9, 11}, 100},         {"exact", {10, 10}, 196}};

// ResNet-18 for 32x32 images; FLOPs per gradient are two for each position and sample.
std::vector<Tensor> cifar_resnet18(double batch) {
  std::vector<Tensor> model{{"conv1", {64, 3, 3, 3}, 2 * 1024 * batch}, {"bn1", {64}, 1}};
  std::int64_t width_before = 64;
  std::int64_t side = 32;
  for (int stage = 1; stage <= 4; ++stage) {
    const std::int64_t width = std::int64_t{32} << stage;
    side = stage == 1 ? 32 : side / 2;
    const double flops = 2.0 * static_cast<double>(side * side) * batch;
    const auto add = [&](const char* name, std::int64_t in, std::int64_t kernel) {
      const std::string full = "layer" + std::to_string(stage) + "." + name;
      model.push_back({full, {width, in, kernel, kernel}, flops});
      model.push_back({full + ".bn", {width}, flops});
    };
    add("0.conv1", width_before, 3);
    add("0.conv2", width, 3);
    if (stage > 1) add("0.shortcut", width_before, 1);
    add("1.conv1", width, 3);
    add("1.conv2", width, 3);
    width_before = width;
  }
  model.push_back({"fc", {10, 512}, 2 * batch});
  model.push_back({"fc.bias", {10}, 2 * batch});
  return model;
}

TEST(Rates, UniformLeavesTheRightTensorsDense) {
  const RatePlan plan(kModel, policy("uniform"));
  EXPECT_EQ(plan.rate_of("bn.weight"), kDense);
  EXPECT_EQ(plan.rate_of("conv1.weight"), kDense) << "the first layer";
  EXPECT_EQ(plan.rate_of("conv2.weight"), 100);
  EXPECT_EQ(plan.rate_of("conv2.bias"), kDense) << "one-dimensional, however long";
  EXPECT_EQ(plan.rate_of("fc.weight"), 100);
  EXPECT_EQ(plan.rate_of("scale"), kDense);
  EXPECT_EQ(plan.rate_of("small"), kDense) << "99 elements";
  EXPECT_EQ(plan.rate_of("exact"), 100) << "100 elements";
}

TEST(Rates, TheFirstLayerCanBeCompressed) {
  RatePolicy all = policy("uniform");
  all.first_layer_dense = false;
  EXPECT_EQ(RatePlan(kModel, all).rate_of("conv1.weight"), 100);
}

TEST(Rates, PaperHasThreeSteps) {
  std::vector<Tensor> model{{"first", {1000, 10}, 1}};
  for (const double flops : {0.5, 127.9, 128.0, 195.9, 196.0, 1e6}) {
    model.push_back({core::shortest(flops), {1000, 10}, flops});
  }
  const RatePlan plan(model, policy("paper", 1));
  EXPECT_EQ(plan.rate_of("0.5"), 400);
  EXPECT_EQ(plan.rate_of("127.9"), 400);
  EXPECT_EQ(plan.rate_of("128"), 50);
  EXPECT_EQ(plan.rate_of("195.9"), 50);
  EXPECT_EQ(plan.rate_of("196"), 25);
  EXPECT_EQ(plan.rate_of("1e+06"), 25);
}

TEST(Rates, ShortTensorsAreDenseUnderPaperAndPatternsToo) {
  const RatePlan paper(kModel, policy("paper"));
  EXPECT_EQ(paper.rate_of("small"), kDense);
  EXPECT_EQ(paper.rate_of("exact"), 25);
  const RatePlan pattern(kModel, policy("small:99;exact:101"));
  EXPECT_EQ(pattern.rate_of("small"), 99);
  EXPECT_EQ(pattern.rate_of("exact"), kDense);
}

TEST(Rates, PatternsNameTensors) {
  const RatePlan plan(kModel, policy("conv?.weight:25;fc*:dense;bn*:7;conv2*:9", 50));
  EXPECT_EQ(plan.rate_of("conv1.weight"), 25) << "a pattern overrules the first layer's rule";
  EXPECT_EQ(plan.rate_of("conv2.weight"), 25) << "the first pattern that matches counts";
  EXPECT_EQ(plan.rate_of("fc.weight"), kDense);
  EXPECT_EQ(plan.rate_of("bn.weight"), kDense) << "never one-dimensional tensors";
  EXPECT_EQ(plan.rate_of("conv2.bias"), kDense);
  EXPECT_EQ(plan.rate_of("exact"), 50) << "the overall rate where no pattern matches";
  EXPECT_EQ(RatePlan(kModel, policy("fc*:9", 50)).rate_of("conv1.weight"), kDense);
}

TEST(Rates, PatternsAreGlobs) {
  const auto matches = [](const std::string& pattern, const std::string& name) {
    const std::vector<Tensor> model{{name, {100, 100}}, {"other", {100, 100}}};
    RatePolicy made;
    made.kind = Kind::kPattern;
    made.patterns = {{pattern, 10}, {"*", 5}};
    const std::string none = refusal([&] { RatePlan(model, made); });
    EXPECT_TRUE(none.empty() || has(none, "'" + pattern + "'")) << none;
    return none.empty() && RatePlan(model, made).rate_of(name) == 10;
  };
  for (const char* pattern : {"abc", "*", "a*", "*c", "a*c", "?bc", "a?c", "???", "**", "*b*",
                              "a**c", "*?*", "abc*", "*abc"}) {
    EXPECT_TRUE(matches(pattern, "abc")) << pattern;
  }
  for (const char* pattern : {"ab", "abcd", "b*", "*b", "??", "????", "a?", "ABC", "*d*", "a*b"}) {
    EXPECT_FALSE(matches(pattern, "abc")) << pattern;
  }
  EXPECT_TRUE(matches("*ab*aab", "aabaabaaab"));
  EXPECT_TRUE(matches("gr??e", "größe")) << "a character, not a byte";
  EXPECT_FALSE(matches("gr????e", "größe"));
  EXPECT_TRUE(matches("a:b*", "a:bc"));
}

TEST(Rates, APatternForNothingIsRefused) {
  EXPECT_TRUE(has(refusal([] { RatePlan(kModel, policy("fc*:9;fcc*:400")); }),
                  "no tensor of the model is a 'fcc*'; it has bn.weight, conv1.weight, "));
  // One that comes too late is for something; of no model nothing can be said.
  EXPECT_NO_THROW(RatePlan(kModel, policy("*:9;fc*:400")));
  EXPECT_NO_THROW(RatePlan({}, policy("fc*:400")));
}

TEST(Rates, TextsReadBack) {
  for (const char* text : {"uniform", "flops", "paper", "fc*:400",
                           "fc*:400;conv?.weight:25;embed*:dense", "*:1.5", "a:b:7"}) {
    EXPECT_EQ(policy(text).rates_text(), text);
  }
  EXPECT_EQ(policy("a:1").rates_text(), "a:dense");
  EXPECT_EQ(policy("a:4e2").rates_text(), "a:400");
  RatePolicy again = policy("a:4");
  again.parse_rates("flops");
  EXPECT_TRUE(again.patterns.empty());
}

TEST(Rates, OtherTextsAreRefusedAndChangeNothing) {
  RatePolicy kept = policy("fc*:400");
  for (const char* text : {"", "Uniform", "flop", "fc*", ":5", "a:", "a:0.5", "a:-3", "a:inf",
                           "a:nan", "a:5x", "a:5;", ";a:5", "a:5;;b:6", "a:sparse"}) {
    const std::string message = refusal([&] { kept.parse_rates(text); });
    EXPECT_TRUE(has(message, "uniform, flops, paper") && has(message, "dense")) << text << message;
    EXPECT_EQ(kept.rates_text(), "fc*:400");
  }
}

TEST(Rates, PlansRefuseWhatTheyCannotUse) {
  const auto plan = [](std::vector<Tensor> model, const RatePolicy& made) {
    return refusal([&] { RatePlan(model, made); });
  };
  EXPECT_TRUE(has(plan({{"a", {2}}, {"a", {3}}}, policy("uniform")), "'a' stands twice"));
  EXPECT_TRUE(has(plan({{"a", {2, -2}}}, policy("uniform")), "'a' has the size -2"));
  for (const double rate :
       {0.0, 0.99, -1.0, std::numeric_limits<double>::infinity(), std::nan("")}) {
    EXPECT_TRUE(has(plan({}, policy("uniform", rate)), "a number from 1 on")) << rate;
  }
  EXPECT_TRUE(has(plan({}, policy("flops", 1001)), "[1, 1000]"));
  const std::vector<Tensor> unknown{{"first", {100, 10}}, {"next", {100, 10}}};
  for (const char* text : {"flops", "paper"}) {
    EXPECT_TRUE(has(plan(unknown, policy(text)), "FLOPs per gradient of 'next'")) << text;
    EXPECT_EQ(plan({{"first", {100, 10}}, {"bias", {100}}}, policy(text)), "") << text;
  }
}

TEST(Rates, BucketsHaveTheModelsRates) {
  std::mt19937 random(5);
  const std::vector<Tensor> model = cifar_resnet18(32);
  for (const char* text : {"uniform", "flops", "paper", "layer3*:20;fc:dense"}) {
    const RatePlan plan(model, policy(text, 92));
    for (int round = 0; round < 20; ++round) {
      std::vector<Tensor> some = model;
      std::shuffle(some.begin(), some.end(), random);
      some.resize(random() % (some.size() + 1));
      const Layout bucket = plan.bucket(some);
      ASSERT_EQ(bucket.slices().size(), some.size());
      for (std::size_t i = 0; i < some.size(); ++i) {
        EXPECT_EQ(bucket.slices()[i].name, some[i].name);
        EXPECT_EQ(bucket.slices()[i].length, some[i].elements());
        EXPECT_EQ(bucket.slices()[i].rate, plan.rate_of(some[i].name));
      }
    }
  }
}

TEST(Rates, BucketsHoldOnlyTensorsOfTheModel) {
  const RatePlan plan(kModel, policy("uniform"));
  EXPECT_TRUE(has(refusal([&] { plan.rate_of("other"); }), "'other' is not a tensor of the model"));
  const std::vector<Tensor> other{{"other", {3}}};
  EXPECT_TRUE(has(refusal([&] { plan.bucket(other); }), "'other'"));
  const std::vector<Tensor> resized{{"fc.weight", {10, 513}}};
  EXPECT_TRUE(has(refusal([&] { plan.bucket(resized); }), "5130 elements in the bucket and 5120"));
  const std::vector<Tensor> reshaped{{"fc.weight", {5120}}};
  EXPECT_EQ(plan.bucket(reshaped).slices()[0].rate, 100) << "buckets are flat";
  const std::vector<Tensor> twice{kModel[2], kModel[2]};
  EXPECT_THROW(plan.bucket(twice), core::UsageError);
}

TEST(Rates, EmptyAndTinyModels) {
  for (const char* text : {"uniform", "flops", "paper", "*:1000"}) {
    EXPECT_EQ(make_layout({}, policy(text)).elements(), 0);
    const std::vector<Tensor> tiny{{"none", {0, 3}, 1}, {"one", {1, 1}, 1}, {"empty", {5, 0}, 1}};
    const Layout layout = make_layout(tiny, policy(text, 500));
    EXPECT_EQ(layout.elements(), 1);
    for (const Slice& slice : layout.slices()) EXPECT_TRUE(slice.dense());
  }
}

// Stages of 32, 16, 8 and 4 positions a side. Exact proportion to the FLOPs is 4.46, 17.8, 71 and
// 286, beside the 5, 13, 85 and 330 that were once set by hand; half of the first stage rounds up.
TEST(Rates, FlopsOnAResNetAt92) {
  const std::vector<Tensor> model = cifar_resnet18(32);
  const Layout layout = make_layout(model, policy("flops", 92));
  const RatePlan plan(model, policy("flops", 92));
  EXPECT_EQ(plan.rate_of("layer1.0.conv1"), 5);
  EXPECT_EQ(plan.rate_of("layer1.1.conv2"), 4);
  EXPECT_EQ(plan.rate_of("layer2.1.conv2"), 18);
  EXPECT_EQ(plan.rate_of("layer3.1.conv2"), 72);
  EXPECT_EQ(plan.rate_of("layer4.1.conv2"), 288);
  EXPECT_EQ(plan.rate_of("layer4.0.shortcut"), 288);
  EXPECT_EQ(plan.rate_of("fc"), 1000);
  std::int64_t compressed = 0;
  std::int64_t sent = 0;
  for (const Slice& slice : layout.slices()) {
    if (slice.dense()) continue;
    compressed += slice.length;
    sent += cut(slice, {}).kept();
  }
  EXPECT_NEAR(static_cast<double>(compressed) / static_cast<double>(sent), 92, 0.7);
}

}  // namespace
}  // namespace scalecom::layout
