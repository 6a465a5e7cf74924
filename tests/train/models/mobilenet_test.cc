#include "train/models/mobilenet.h"

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "tests/train/models/picked.h"

namespace train::models {
namespace {

std::unique_ptr<Classifier> make_tiny(std::uint64_t seed = 5) {
  MobileNetOptions options;
  options.input = {2, 8, 8};
  options.stem = 3;
  options.stages = {{1, 4, 1, 1}, {2, 4, 2, 1}, {2, 5, 1, 2}};
  options.head = 6;
  options.classes = 4;
  const auto samples = some_samples(options.input, 8, 4);
  return make_classifier({}, make_mobilenet(options), samples, samples, {seed, 6, 1});
}

TEST(MobileNetTest, TheDefaultIsMobileNetV2ForTenClasses) {
  MobileNetOptions options;
  options.batch = 32;
  const auto model = make_mobilenet(options);
  // 3,504,872 of the network for 1,000 classes, less 990 * 1281 of its last layer.
  EXPECT_EQ(model->elements(), 3'504'872 - 990 * 1281);
  EXPECT_EQ(model->tensors()[0].shape, (std::vector<std::int64_t>{3, 3, 3, 32}));
}

TEST(MobileNetTest, HalvesThePlacesThreeTimes) {
  const auto model = make_mobilenet({});
  std::map<std::string, double> places;
  for (const auto& tensor : model->tensors()) places[tensor.name] = tensor.flops_per_gradient / 2;
  EXPECT_EQ(places.at("stem.conv.weight"), 32 * 32);
  EXPECT_EQ(places.at("block2.depth.conv.weight"), 32 * 32);
  EXPECT_EQ(places.at("block4.expand.conv.weight"), 32 * 32);
  EXPECT_EQ(places.at("block4.depth.conv.weight"), 16 * 16);
  EXPECT_EQ(places.at("head.conv.weight"), 4 * 4);
}

TEST(MobileNetTest, ADepthwiseConvolutionHasOneKernelAChannel) {
  const auto model = make_mobilenet({});
  for (const auto& tensor : model->tensors()) {
    if (!tensor.name.ends_with("depth.conv.weight")) continue;
    EXPECT_EQ(tensor.shape[2], 1) << tensor.name;
    EXPECT_EQ(tensor.elements(), 9 * tensor.shape[3]) << tensor.name;
  }
}

TEST(MobileNetTest, GradientIsTheSlopeOfTheLoss) {
  const auto network = make_tiny();
  disturb(*network);
  EXPECT_LT(worst_slope(*network, first_picks(6), 2e-4F), 4e-2);  // some ReLUs switch
}

TEST(MobileNetTest, TheSameSeedGivesTheSameBits) {
  const auto picks = first_picks(6);
  EXPECT_EQ(gradient_of(*make_tiny(), picks).values, gradient_of(*make_tiny(), picks).values);
  EXPECT_NE(gradient_of(*make_tiny(), picks).values, gradient_of(*make_tiny(6), picks).values);
}

}  // namespace
}  // namespace train::models
