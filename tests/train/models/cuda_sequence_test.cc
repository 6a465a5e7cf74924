#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <thread>

#include "tests/device.h"
#include "tests/train/models/sequences.h"
#include "train/models/recogniser.h"
#include "train/models/transformer.h"

/// Models of sequences on a GPU against those on the host.
namespace train::models {
namespace {

namespace core = scalecom::core;

constexpr std::int64_t kBatch = 4;

struct Case {
  const char* name;
  std::unique_ptr<SequenceEngine> (*make)(core::Device device, int at_once, int joined);
  Rows (*rows)(int seed);
  /// How far off the gradient of any one tensor may be; 0 where that was not looked into.
  double worst;
};

RecogniserOptions recogniser() {
  RecogniserOptions options;
  options.bands = 8;
  options.frames = 30;
  options.labels = 3;
  options.hidden = 24;
  options.layers = 2;
  options.batch = kBatch;
  return options;
}

std::unique_ptr<SequenceEngine> make_recognising(core::Device device, int at_once, int joined) {
  SequenceEngine::Options options{5, kBatch, at_once, joined, {}, 8};
  for (int i = 0; i < 400; ++i) options.table.push_back(std::sin(static_cast<float>(i * i % 977)));
  return make_sequence_engine(device, make_recogniser(recogniser()), options);
}

Rows recogniser_rows(int seed) {
  Rows rows{recogniser().width(), {}};
  for (int sample = 0; sample < kBatch; ++sample) {
    for (int i = 0; i < 30; ++i) rows.values.push_back((i * 7 + sample * 5 + seed) % 50);
    rows.values.insert(rows.values.end(), {sample + 1, 2, sample == 0 ? 0 : 2});
  }
  return rows;
}

TransformerOptions transformer() {
  TransformerOptions options;
  options.vocabulary = 40;
  options.width = 32;
  options.inner = 64;
  options.layers = 2;
  options.longest = 24;
  options.dropout = 0.1;
  options.batch = kBatch;
  return options;
}

std::unique_ptr<SequenceEngine> make_translating(core::Device device, int at_once, int joined) {
  const TransformerOptions options = transformer();
  return make_sequence_engine(device, make_transformer(options),
                              {5, kBatch, at_once, joined, options.positions(), options.width});
}

/// Of two widths, by turns.
Rows transformer_rows(int seed) {
  const int length = seed % 2 == 0 ? 8 : 16;
  Rows rows{2 * length + 1, {}};
  for (int sample = 0; sample < kBatch; ++sample) {
    const int words = length - 1 - sample;
    const auto side = [&](int places, bool begins) {
      if (begins) rows.values.push_back(TransformerOptions::kBegin);
      for (int i = 0; i < places; ++i) {
        const int word = 3 + (i * 5 + sample * 3 + seed) % 37;
        const int end = i == words ? TransformerOptions::kEnd : TransformerOptions::kNothing;
        rows.values.push_back(i < words ? word : end);
      }
    };
    side(length, false);
    side(length, true);
  }
  return rows;
}

/// Over the length of b.
double distance(const std::vector<float>& a, const std::vector<float>& b) {
  double error = 0;
  double whole = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    error += std::pow(a[i] - b[i], 2);
    whole += std::pow(b[i], 2);
  }
  return std::sqrt(error / whole);
}

/// The same of the tensor that is the furthest off: what a short one lacks is little of the whole.
double worst_distance(const SequenceEngine& engine, const std::vector<float>& a,
                      const std::vector<float>& b) {
  double worst = 0;
  std::ptrdiff_t at = 0;
  for (const auto& tensor : engine.parameters().tensors()) {
    const std::ptrdiff_t end = at + tensor.elements();
    worst = std::max(
        worst, distance({a.begin() + at, a.begin() + end}, {b.begin() + at, b.begin() + end}));
    at = end;
  }
  return worst;
}

class SequenceOnGpuTest : public testing::TestWithParam<Case> {};

TEST_P(SequenceOnGpuTest, IsTheHostsButForRounding) {
  const auto host = GetParam().make({}, 1, 1);
  const auto device = GetParam().make(scalecom::testing::device(), 1, 1);
  for (int seed = 0; seed < 4; ++seed) {
    const Rows rows = GetParam().rows(seed);
    const auto expected = gradient_of(*host, rows, seed);
    const auto got = gradient_of(*device, rows, seed);
    EXPECT_NEAR(got.loss, expected.loss, 2e-2 * std::abs(expected.loss));
    EXPECT_LT(distance(got.values, expected.values), 3e-2) << seed;  // products are in TF32
    if (GetParam().worst > 0) {
      EXPECT_LT(worst_distance(*host, got.values, expected.values), GetParam().worst) << seed;
    }
    const auto scores = device->score(rows);
    const auto host_scores = host->score(rows);
    ASSERT_EQ(scores.size(), host_scores.size());
    for (std::size_t i = 0; i < scores.size(); ++i) EXPECT_NEAR(scores[i], host_scores[i], 1.01);
  }
}

TEST_P(SequenceOnGpuTest, GivesTheSameBitsOnAnyLane) {
  const auto one = GetParam().make(scalecom::testing::device(), 1, 1);
  const auto many = GetParam().make(scalecom::testing::device(), 3, 1);
  for (int seed = 0; seed < 7; ++seed) {
    const Rows rows = GetParam().rows(seed);
    EXPECT_EQ(gradient_of(*one, rows, seed).values, gradient_of(*many, rows, seed).values);
  }
}

TEST_P(SequenceOnGpuTest, ManyThreadsGetTheirOwn) {
  const auto engine = GetParam().make(scalecom::testing::device(), 2, 1);
  std::vector<std::vector<float>> alone;
  for (int seed = 0; seed < 6; ++seed) {
    alone.push_back(gradient_of(*engine, GetParam().rows(seed), seed).values);
  }
  std::vector<std::vector<float>> together(alone.size());
  {
    std::vector<std::jthread> threads;
    for (int seed = 0; seed < 6; ++seed) {
      threads.emplace_back([&, seed] {
        together[static_cast<std::size_t>(seed)] =
            gradient_of(*engine, GetParam().rows(seed), seed).values;
      });
    }
  }
  EXPECT_EQ(together, alone);
}

TEST_P(SequenceOnGpuTest, SeesNewWeights) {
  const auto engine = GetParam().make(scalecom::testing::device(), 2, 1);
  const auto stream = stream_of(*engine);
  const Rows rows = GetParam().rows(1);
  const float before = gradient_of(*engine, rows).loss;
  auto weights = on_host(engine->weights(), stream);
  for (float& weight : weights) weight *= 0.5F;
  machine::from_host(weights, engine->weights(), stream);
  engine->weights_written(stream);
  EXPECT_NE(gradient_of(*engine, rows).loss, before);
}

/// Of the batches of some seeds, all asked for at once.
std::vector<SequenceGradient> gradients_of(SequenceEngine& engine, Rows (*rows_of)(int seed),
                                           std::span<const int> seeds) {
  const auto stream = stream_of(engine);
  const std::int64_t elements = engine.parameters().elements();
  const auto count = static_cast<std::int64_t>(seeds.size());
  core::Array<float> gradients(engine.device(), count * elements);
  core::Array<float> losses(engine.device(), count);
  std::vector<Rows> rows;
  for (const int seed : seeds) rows.push_back(rows_of(seed));
  std::vector<SequenceBatch> batches;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    batches.push_back({rows[i], seeds[i],
                       gradients.span().subspan(i * static_cast<std::size_t>(elements),
                                                static_cast<std::size_t>(elements)),
                       losses.data() + i, stream});
  }
  engine.gradients(batches);
  const auto values = on_host(gradients.span(), stream);
  const auto loss = on_host(losses.span(), stream);
  std::vector<SequenceGradient> out;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const auto begin = values.begin() + static_cast<std::ptrdiff_t>(i) * elements;
    out.push_back({{begin, begin + elements}, loss[i]});
  }
  return out;
}

TEST_P(SequenceOnGpuTest, JoinedLearnersGetTheirOwnGradients) {
  const auto apart = GetParam().make(scalecom::testing::device(), 1, 1);
  const auto joined = GetParam().make(scalecom::testing::device(), 1, 3);
  EXPECT_EQ(apart->joined(), 1);
  ASSERT_EQ(joined->joined(), 3);
  // Three of the Transformer's of one width; three of two, which cannot be joined; and one more
  // than three.
  for (const std::vector<int>& seeds :
       {std::vector{0, 2, 4}, std::vector{1, 2, 3}, std::vector{1, 3, 5, 7}}) {
    const auto got = gradients_of(*joined, GetParam().rows, seeds);
    for (std::size_t i = 0; i < seeds.size(); ++i) {
      const auto expected = gradient_of(*apart, GetParam().rows(seeds[i]), seeds[i]);
      EXPECT_NEAR(got[i].loss, expected.loss, 1e-2 * expected.loss);
      EXPECT_LT(distance(got[i].values, expected.values), 1e-2) << seeds[i];
      if (GetParam().worst > 0) {
        EXPECT_LT(worst_distance(*apart, got[i].values, expected.values), GetParam().worst)
            << seeds[i];
      }
    }
    const auto again = gradients_of(*joined, GetParam().rows, seeds);
    for (std::size_t i = 0; i < seeds.size(); ++i) EXPECT_EQ(got[i].values, again[i].values);
  }
}

TEST(TransformerOnGpuTest, JoinedLearnersDrawTheirOwnDropout) {
  const auto joined = make_translating(scalecom::testing::device(), 1, 3);
  const std::vector<int> seeds{0, 2, 4};
  const auto got = gradients_of(*joined, transformer_rows, seeds);
  for (std::size_t i = 0; i < seeds.size(); ++i) {
    const auto other = gradient_of(*joined, transformer_rows(seeds[i]), seeds[i] + 1);
    EXPECT_GT(distance(got[i].values, other.values), 5e-2) << seeds[i];
  }
}

TEST(TransformerOnGpuTest, TranslatesAsTheHost) {
  const auto host = make_translating({}, 1, 1);
  const auto device = make_translating(scalecom::testing::device(), 1, 1);
  const Rows sources{6, {5, 9, 12, 2, 0, 0, 30, 31, 7, 8, 11, 2}};
  EXPECT_EQ(host->answer(sources), device->answer(sources));
}

INSTANTIATE_TEST_SUITE_P(
    Models, SequenceOnGpuTest,
    testing::Values(Case{"Recogniser", make_recognising, recogniser_rows, 1e-2},
                    Case{"Transformer", make_translating, transformer_rows, 0}),
    [](const auto& given) { return std::string(given.param.name); });

}  // namespace
}  // namespace train::models
