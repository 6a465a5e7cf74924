#include "scalecom/plan/model.h"

#include <gtest/gtest.h>

#include <set>

#include "scalecom/core/error.h"

namespace scalecom::plan {
namespace {

struct Known {
  const char* name;
  std::int64_t parameters;
  double forward_gflops;  // of one sample
};

// Parameters as the models' own authors count them, but for transformer-base, whose vocabulary
// differs from copy to copy.
class BuiltIn : public ::testing::TestWithParam<Known> {};

TEST_P(BuiltIn, HasTheParametersAndTheArithmeticThatItIsKnownFor) {
  const Model model = built_in_model(GetParam().name);
  EXPECT_EQ(model.elements(), GetParam().parameters);
  EXPECT_NEAR(model.forward_flops() / 1e9 / GetParam().forward_gflops, 1, 0.02);
  std::set<std::string> names;
  for (const Layer& layer : model.layers) {
    for (const layout::Tensor& tensor : layer.tensors) {
      EXPECT_TRUE(names.insert(tensor.name).second) << tensor.name;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    Models, BuiltIn,
    ::testing::Values(Known{"resnet18", 11'689'512, 3.63}, Known{"resnet34", 21'797'672, 7.33},
                      Known{"resnet50", 25'557'032, 8.18}, Known{"mobilenetv2", 3'504'872, 0.601},
                      Known{"bert-base", 109'482'240, 96.6}, Known{"gpt2", 124'439'808, 272.7},
                      Known{"llama-7b", 6'738'415'616, 28'160},
                      // Six blocks of 3'152'384 and six of 4'204'032 behind 37'000 rows of 512.
                      Known{"transformer-base", 63'082'496, 4.06}));

TEST(BuiltInModels, EveryNameMakesItsModel) {
  for (const std::string& name : built_in_models()) {
    const Model model = built_in_model(name);
    EXPECT_EQ(model.name, name);
    EXPECT_FALSE(model.sample.empty());
    EXPECT_GT(model.forward_flops(), 0);
  }
  EXPECT_THROW(built_in_model("resnet51"), core::UsageError);
}

}  // namespace
}  // namespace scalecom::plan
