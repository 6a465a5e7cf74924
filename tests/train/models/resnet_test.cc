#include "train/models/resnet.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "tests/train/models/picked.h"

namespace train::models {
namespace {

std::unique_ptr<Classifier> make_tiny(std::uint64_t seed = 5) {
  ResNetOptions options;
  options.input = {2, 8, 8};
  options.widths = {3, 4};
  options.blocks = {1, 1};
  options.classes = 4;
  const auto samples = some_samples(options.input, 8, 4);
  return make_classifier({}, make_resnet(options), samples, samples, {seed, 6, 1});
}

TEST(ResNetTest, TheDefaultIsResNet18) {
  ResNetOptions options;
  options.batch = 32;
  const auto model = make_resnet(options);
  EXPECT_EQ(model->elements(), 11'173'962);
  EXPECT_EQ(model->figure_elements(), 2 * 4800);
  int layers = 0;
  for (const auto& tensor : model->tensors()) {
    const bool counts =
        tensor.shape.size() > 1 && tensor.name.find("shortcut") == std::string::npos;
    layers += counts ? 1 : 0;
  }
  EXPECT_EQ(layers, 18);
  EXPECT_EQ(model->tensors()[0].name, "stem.conv.weight");
  EXPECT_EQ(model->tensors()[0].shape, (std::vector<std::int64_t>{3, 3, 3, 64}));
  EXPECT_EQ(model->tensors()[0].flops_per_gradient, 2 * 1024 * 32);
  const auto& last = model->tensors()[model->tensors().size() - 2];
  EXPECT_EQ(last.name, "fc.weight");
  EXPECT_EQ(last.shape, (std::vector<std::int64_t>{512, 10}));
}

TEST(ResNetTest, BlocksOf3463AreResNet34) {
  ResNetOptions options;
  options.blocks = {3, 4, 6, 3};
  // 21,797,672 of the network for ImageNet, less its last layer (513,000) and its stem (9,408).
  EXPECT_EQ(make_resnet(options)->elements(), 21'797'672 - 513'000 - 9'408 + 513 * 10 + 27 * 64);
}

TEST(ResNetTest, HalvesThePlacesOfEachStage) {
  const auto model = make_resnet({});
  for (const auto& tensor : model->tensors()) {
    if (tensor.name.starts_with("stage4") && tensor.shape.size() == 4) {
      EXPECT_EQ(tensor.flops_per_gradient, 2 * 16) << tensor.name;
    }
  }
}

TEST(ResNetTest, GradientIsTheSlopeOfTheLoss) {
  const auto network = make_tiny();
  disturb(*network);
  EXPECT_LT(worst_slope(*network, first_picks(6), 1e-3F), 4e-2);  // some ReLUs switch
}

TEST(ResNetTest, TheSameSeedGivesTheSameBits) {
  const auto picks = first_picks(6);
  EXPECT_EQ(gradient_of(*make_tiny(), picks).values, gradient_of(*make_tiny(), picks).values);
  EXPECT_NE(gradient_of(*make_tiny(), picks).values, gradient_of(*make_tiny(6), picks).values);
}

TEST(ResNetTest, BlocksBeginAsTheirShortcuts) {
  const auto network = make_tiny();
  const float* at = network->weights().data();
  for (const auto& tensor : network->model().tensors()) {
    if (tensor.shape.size() == 1) {
      const bool passes = tensor.name.ends_with(".scale") && !tensor.name.ends_with("norm2.scale");
      EXPECT_EQ(*at, passes ? 1 : 0) << tensor.name;
    }
    at += tensor.elements();
  }
}

TEST(ResNetTest, OnlyWhoKeepsFiguresChangesThem) {
  const auto network = make_tiny();
  const auto picks = first_picks(6);
  const auto figures = [&] {
    return std::vector<float>(network->figures().begin(), network->figures().end());
  };
  const auto first = figures();
  const double score = network->score(picks).loss;
  const auto gradient = gradient_of(*network, picks).values;
  EXPECT_EQ(figures(), first);
  EXPECT_EQ(network->score(picks).loss, score);

  // A mean of 0 and a variance of 1 at first, of which a tenth gives way to the batch's own.
  EXPECT_EQ(gradient_of(*network, picks, true).values, gradient);
  const auto second = figures();
  EXPECT_NE(second, first);
  EXPECT_NE(network->score(picks).loss, score);
  gradient_of(*network, picks, true);
  for (std::size_t i = 0; i < first.size(); ++i) {
    EXPECT_NEAR(figures()[i] - second[i], 0.9F * (second[i] - first[i]), 1e-5);
  }
  // After many batches evaluation sees nearly what training does; the variance it uses is that of
  // the population.
  for (int i = 0; i < 200; ++i) gradient_of(*network, picks, true);
  EXPECT_NEAR(network->score(picks).loss / 6, gradient_of(*network, picks).loss, 0.15);
}

}  // namespace
}  // namespace train::models
