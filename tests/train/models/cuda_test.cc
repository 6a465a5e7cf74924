// The classifier on a GPU, against the one on the CPU.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <thread>
#include <vector>

#include "scalecom/core/hash.h"
#include "tests/device.h"
#include "tests/train/models/picked.h"
#include "train/models/mobilenet.h"
#include "train/models/network.h"
#include "train/models/resnet.h"

namespace train::models {
namespace {

namespace core = scalecom::core;

constexpr Shape kShape{3, 8, 8};
constexpr int kBatch = 12;

data::Samples pictures() {
  data::Samples samples;
  samples.shape = kShape;
  constexpr std::uint64_t kSize = 40;
  for (std::uint64_t i = 0; i < kSize * 192; ++i) {
    samples.bytes.push_back(static_cast<std::uint8_t>(core::combine(1, i)));
  }
  for (std::uint64_t i = 0; i < kSize; ++i) {
    samples.labels.push_back(static_cast<std::uint8_t>(i % 5));
  }
  for (const float mean : {0.4F, 0.5F, 0.6F}) data::append_scale(mean, 0.3F, samples.scale);
  samples.variation = {2, true};
  return samples;
}

std::vector<data::Pick> varied_picks(int count) {
  std::vector<data::Pick> picks;
  for (int i = 0; i < count; ++i) {
    picks.push_back(data::vary(pictures().variation, (7 * i) % 40,
                               core::combine(3, static_cast<std::uint64_t>(i))));
  }
  return picks;
}

std::unique_ptr<Model> linear_model() {
  NetworkOptions options;
  options.input = kShape;
  options.layers = {linear("fc1", 33), relu(), linear("fc2", 5)};
  return make_network(options);
}

std::unique_ptr<Model> convolutional_model() {
  NetworkOptions options;
  options.input = kShape;
  options.layers = {convolution("conv1", 8, 3), relu_pool(), convolution("conv2", 6, 3),
                    relu_pool(), linear("fc", 5)};
  return make_network(options);
}

std::unique_ptr<Model> residual_model() {
  ResNetOptions options;
  options.input = kShape;
  options.widths = {16, 40};
  options.blocks = {2, 2};
  options.classes = 5;
  return make_resnet(options);
}

std::unique_ptr<Model> inverted_model() {
  MobileNetOptions options;
  options.input = kShape;
  options.stem = 16;
  options.stages = {{1, 16, 1, 1}, {6, 24, 2, 2}};
  options.head = 64;
  options.classes = 5;
  return make_mobilenet(options);
}

using MakeModel = std::unique_ptr<Model> (*)();

std::unique_ptr<Classifier> make(core::Device device, MakeModel model, int at_once = 1,
                                 std::int64_t batch = kBatch, std::int64_t joined = 1) {
  return make_classifier(device, model(), pictures(), pictures(), {9, batch, at_once, joined});
}

/// The length of the difference over that of `expected`.
double error(const std::vector<float>& found, const std::vector<float>& expected) {
  double difference = 0;
  double length = 0;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    difference += std::pow(found[i] - expected[i], 2);
    length += std::pow(expected[i], 2);
  }
  return std::sqrt(difference / length);
}

const core::Device kDevice = core::Device::cuda();

TEST(CudaClassifierTest, BeginsWithTheWeightsOfTheCpu) {
  const auto host = make({}, residual_model);
  const auto device = make(kDevice, residual_model);
  const auto stream = stream_of(*device);
  EXPECT_EQ(on_host(device->weights(), stream), on_host(host->weights(), {}));
  EXPECT_EQ(on_host(device->figures(), stream), on_host(host->figures(), {}));
}

// Products of matrices are computed in full precision, so this tells every pixel apart.
TEST(CudaClassifierTest, SeesTheSamplesOfTheCpu) {
  const auto host = make({}, linear_model);
  const auto device = make(kDevice, linear_model);
  const auto picks = varied_picks(kBatch);
  const Gradient expected = gradient_of(*host, picks);
  const Gradient found = gradient_of(*device, picks);
  EXPECT_NEAR(found.loss, expected.loss, 1e-5);
  EXPECT_LT(error(found.values, expected.values), 1e-5);
  const auto score = device->score(varied_picks(40));
  EXPECT_NEAR(score.loss, host->score(varied_picks(40)).loss, 1e-3);
  EXPECT_EQ(score.correct, host->score(varied_picks(40)).correct);
}

// Convolutions are computed in TF32, with 10 bits after the point.
TEST(CudaClassifierTest, ComputesWhatTheCpuDoes) {
  for (const MakeModel model : {convolutional_model, residual_model}) {
    const auto host = make({}, model);
    const auto device = make(kDevice, model);
    disturb(*host);
    disturb(*device);
    const auto picks = varied_picks(kBatch);
    const Gradient expected = gradient_of(*host, picks, true);
    const Gradient found = gradient_of(*device, picks, true);
    EXPECT_NEAR(found.loss, expected.loss, 1e-2);
    EXPECT_LT(error(found.values, expected.values), 3e-2);
    if (!host->model().figures().empty()) {
      EXPECT_LT(error(on_host(device->figures(), stream_of(*device)), on_host(host->figures(), {})),
                3e-3);
    }
    EXPECT_NEAR(device->score(picks).loss, host->score(picks).loss, 0.1);
  }
}

TEST(CudaClassifierTest, ComputesBatchesOfOtherSizesWithoutAGraph) {
  for (const MakeModel model : {linear_model, convolutional_model, residual_model}) {
    const auto usual = make(kDevice, model);
    const auto unusual = make(kDevice, model, 1, kBatch + 1);
    disturb(*usual);
    disturb(*unusual);
    const auto picks = varied_picks(kBatch);
    const Gradient expected = gradient_of(*usual, picks);
    const Gradient found = gradient_of(*unusual, picks);
    EXPECT_NEAR(found.loss, expected.loss, 1e-5);
    EXPECT_LT(error(found.values, expected.values), 1e-4);
  }
}

TEST(CudaClassifierTest, LanesAndRunsGiveTheSameBits) {
  const auto one = make(kDevice, residual_model);
  disturb(*one);
  std::vector<Gradient> expected(8);
  std::vector<std::vector<data::Pick>> picks;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    picks.push_back(varied_picks(kBatch));
    std::rotate(picks[i].begin(), picks[i].begin() + static_cast<std::ptrdiff_t>(i),
                picks[i].end());
    expected[i] = gradient_of(*one, picks[i], i == 0);
  }
  const auto several = make(kDevice, residual_model, 3);
  disturb(*several);
  std::vector<Gradient> found(expected.size());
  {
    std::vector<std::jthread> threads;
    for (std::size_t i = 0; i < found.size(); ++i) {
      threads.emplace_back([&, i] { found[i] = gradient_of(*several, picks[i], i == 0); });
    }
  }
  for (std::size_t i = 0; i < found.size(); ++i) {
    EXPECT_EQ(found[i].values, expected[i].values);
    EXPECT_EQ(found[i].loss, expected[i].loss);
  }
  EXPECT_EQ(on_host(several->figures(), stream_of(*several)),
            on_host(one->figures(), stream_of(*one)));
}

/// The gradients of batches that are asked for at once.
std::vector<Gradient> gradients_of(Classifier& classifier,
                                   const std::vector<std::vector<data::Pick>>& picks) {
  const std::int64_t elements = classifier.model().elements();
  const auto stream = stream_of(classifier);
  std::vector<core::Array<float>> values;
  core::Array<float> losses(classifier.device(), static_cast<std::int64_t>(picks.size()));
  std::vector<core::Stream> streams;
  std::vector<Batch> batches;
  for (std::size_t i = 0; i < picks.size(); ++i) {
    values.emplace_back(classifier.device(), elements);
    streams.push_back(stream_of(classifier));
    batches.push_back({picks[i], values[i].span(), losses.data() + i, i == 0, streams[i]});
  }
  classifier.gradients(batches);
  std::vector<Gradient> gradients;
  for (std::size_t i = 0; i < picks.size(); ++i) {
    gradients.push_back({on_host(values[i].span(), streams[i]),
                         on_host(losses.span().subspan(i, 1), streams[i])[0]});
  }
  return gradients;
}

std::vector<std::vector<data::Pick>> rotated_picks(int batches) {
  std::vector<std::vector<data::Pick>> picks;
  for (int i = 0; i < batches; ++i) {
    picks.push_back(varied_picks(kBatch + 2 * i));
    picks.back().erase(picks.back().begin(), picks.back().begin() + 2 * i);
  }
  return picks;
}

// Joined batches are computed in bf16, with 7 bits after the point.
TEST(CudaClassifierTest, JoinedLearnersGetTheirOwn) {
  constexpr int kLearners = 6;
  for (const MakeModel model : {residual_model, inverted_model}) {
    const auto host = make({}, model);
    const auto device = make(kDevice, model, 1, kBatch, kLearners);
    ASSERT_TRUE(device->joins());
    disturb(*host);
    disturb(*device);
    const auto picks = rotated_picks(kLearners);
    const auto expected = gradients_of(*host, picks);
    const auto found = gradients_of(*device, picks);
    for (std::size_t i = 0; i < picks.size(); ++i) {
      EXPECT_NEAR(found[i].loss, expected[i].loss, 5e-2) << i;
      EXPECT_LT(error(found[i].values, expected[i].values), 0.1) << i;
      // Another learner's would be off by more than half.
      EXPECT_GT(error(found[i].values, expected[(i + 1) % picks.size()].values), 0.3) << i;
    }
    std::vector<float> figures(host->figures().size());
    for (const auto& batch : picks) {
      const auto alone = make({}, model);
      disturb(*alone);
      gradient_of(*alone, batch, true);
      for (std::size_t i = 0; i < figures.size(); ++i) {
        figures[i] += alone->figures()[i] / static_cast<float>(kLearners);
      }
    }
    EXPECT_LT(error(on_host(device->figures(), stream_of(*device)), figures), 2e-2);
    const auto again = gradients_of(*device, picks);
    for (std::size_t i = 0; i < picks.size(); ++i) EXPECT_EQ(again[i].values, found[i].values);
  }
}

TEST(CudaClassifierTest, WhatCannotBeJoinedIsComputedApart) {
  const auto device = make(kDevice, residual_model, 1, kBatch, 4);
  const auto apart = make(kDevice, residual_model, 1, kBatch + 1);
  auto picks = rotated_picks(3);  // of four
  const auto found = gradients_of(*device, picks);
  for (std::size_t i = 0; i < picks.size(); ++i) {
    EXPECT_LT(error(found[i].values, gradient_of(*apart, picks[i]).values), 1e-4);
  }
  EXPECT_FALSE(make(kDevice, linear_model, 1, kBatch, 4)->joins());
}

TEST(CudaClassifierTest, FollowsItsWeights) {
  const auto device = make(kDevice, residual_model, 2);
  const auto picks = varied_picks(kBatch);
  const auto stream = stream_of(*device);
  const float before = gradient_of(*device, picks).loss;
  const auto weights = on_host(device->weights(), stream);
  machine::from_host(std::vector<float>(weights.size()), device->weights(), stream);
  device->weights_written(stream);
  for (int i = 0; i < 2; ++i) EXPECT_NEAR(gradient_of(*device, picks).loss, std::log(5.0), 1e-5);
  machine::from_host(weights, device->weights(), stream);
  device->weights_written(stream);
  EXPECT_EQ(gradient_of(*device, picks).loss, before);
}

}  // namespace
}  // namespace train::models
