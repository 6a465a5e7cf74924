// The classifier on a GPU, against the one on the CPU.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <thread>
#include <vector>

#include "scalecom/core/hash.h"
#include "tests/device.h"
#include "tests/train/models/picked.h"
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

using MakeModel = std::unique_ptr<Model> (*)();

std::unique_ptr<Classifier> make(core::Device device, MakeModel model, int at_once = 1,
                                 std::int64_t batch = kBatch) {
  return make_classifier(device, model(), pictures(), pictures(), {9, batch, at_once});
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

TEST(CudaClassifierTest, FollowsItsWeights) {
  const auto device = make(kDevice, residual_model, 2);
  const auto picks = varied_picks(kBatch);
  const auto stream = stream_of(*device);
  const float before = gradient_of(*device, picks).loss;
  const auto weights = on_host(device->weights(), stream);
  from_host(std::vector<float>(weights.size()), device->weights(), stream);
  device->weights_written(stream);
  for (int i = 0; i < 2; ++i) EXPECT_NEAR(gradient_of(*device, picks).loss, std::log(5.0), 1e-5);
  from_host(weights, device->weights(), stream);
  device->weights_written(stream);
  EXPECT_EQ(gradient_of(*device, picks).loss, before);
}

}  // namespace
}  // namespace train::models
