#include "train/similarity/probe.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <random>

#include "tests/device.h"
#include "tests/methods/ranks.h"

// What the probe says against what a plain statement of it says, and that nobody notices it.
namespace train::similarity {
namespace {

namespace comm = scalecom::comm;
namespace core = scalecom::core;
namespace layout = scalecom::layout;
namespace methods = scalecom::methods;
using methods::testing::Gradients;
using Memories = std::map<std::string, std::vector<float>>;

const layout::Layout& bucket() {
  static const layout::Layout layout(
      {{"first", 0, 40, 1}, {"a", 40, 1003, 10}, {"b", 1043, 250, 5}, {"bias", 1293, 9, 1}});
  return layout;
}

/// One rank of a world, from step to step.
class Rank {
 public:
  Rank(comm::Communicator& world, const std::string& spec)
      : world_(world), control_(world.split(0, world.rank())), method_(methods::make(spec)) {
    const core::Device device = scalecom::testing::device();
    if (device.is_cuda()) stream_ = core::Stream::cuda(device);
    array_ = core::Array<float>(device, bucket().elements());
  }

  void probe() { probe_.emplace(*control_, *method_, bucket()); }

  /// The mean, and what the probe saw where there is one.
  std::vector<float> step(std::vector<float> gradient, Reading* seen = nullptr) {
    move(array_.data(), gradient.data());
    if (probe_) probe_->before(array_.span(), stream_);
    method_->reduce({array_.data(), array_.size(), core::DType::kFloat32, array_.device()},
                    bucket(), world_, stream_);
    if (probe_) *seen = probe_->after(array_.span(), stream_);
    move(gradient.data(), array_.data());
    return gradient;
  }

  Memories memories() const {
    Memories all;
    for (const auto& memory : method_->memories()) {
      all[memory.name].assign(memory.values.begin(), memory.values.end());
    }
    return all;
  }

 private:
  void move(float* to, const float* from) {
    if (stream_.device().is_cuda()) {
      core::cuda::copy(to, from, array_.size() * static_cast<std::int64_t>(sizeof(float)), stream_);
      core::cuda::synchronize(stream_);
    } else {
      std::copy_n(from, array_.size(), to);
    }
  }

  comm::Communicator& world_;
  std::unique_ptr<comm::Communicator> control_;
  std::unique_ptr<methods::Method> method_;
  std::optional<Probe> probe_;
  core::Stream stream_;
  core::Array<float> array_;
};

/// A life of some steps: by step what came out and what was seen, by rank the last memories and all
/// traffic.
struct Life {
  Gradients means;
  std::vector<Reading> readings;
  std::vector<std::vector<Memories>> memories;  // by step, before it; by rank
  std::vector<comm::Counters> traffic;
};

constexpr int kSteps = 6;

std::vector<Gradients> gradients_of(int size) {
  std::mt19937 random(7);
  std::vector<Gradients> all;
  for (int step = 0; step < kSteps; ++step) {
    // Alike, so that leaders are right more often than by chance.
    const Gradients shared = methods::testing::normal(1, bucket().elements(), random);
    Gradients own = methods::testing::normal(size, bucket().elements(), random);
    for (auto& gradient : own) {
      for (std::size_t i = 0; i < gradient.size(); ++i) gradient[i] += shared[0][i];
    }
    all.push_back(std::move(own));
  }
  return all;
}

Life live(int size, const std::string& spec, bool probed) {
  const auto gradients = gradients_of(size);
  Life life;
  life.means.resize(kSteps);
  life.readings.resize(kSteps);
  life.traffic.resize(static_cast<std::size_t>(size));
  life.memories.assign(kSteps + 1, std::vector<Memories>(static_cast<std::size_t>(size)));
  comm::inproc::run(size, [&](comm::Communicator& world) {
    const auto number = static_cast<std::size_t>(world.rank());
    Rank rank(world, spec);
    if (probed) rank.probe();
    for (std::size_t step = 0; step < kSteps; ++step) {
      life.memories[step][number] = rank.memories();
      Reading seen;
      auto mean = rank.step(gradients[step][number], &seen);
      if (number != 0) continue;
      life.means[step] = std::move(mean);
      life.readings[step] = std::move(seen);
    }
    life.memories[kSteps][number] = rank.memories();
    life.traffic[number] = world.counters();
  });
  return life;
}

/// Learners' memories, flat; the ranks of a group are one learner.
std::vector<std::vector<double>> flat(const std::vector<Memories>& ranks, int members) {
  std::vector<std::vector<double>> all(ranks.size() / static_cast<std::size_t>(members),
                                       std::vector<double>(1302));
  for (std::size_t r = 0; r < ranks.size(); ++r) {
    for (const auto& [name, values] : ranks[r]) {
      const auto bracket = name.find('[');
      const std::string tensor = name.substr(0, bracket);
      const std::size_t first =
          bracket == std::string::npos ? 0 : std::stoul(name.substr(bracket + 1));
      const std::size_t offset = (tensor == "a" ? 40 : 1043) + first;
      for (std::size_t i = 0; i < values.size(); ++i) {
        all[r / static_cast<std::size_t>(members)][offset + i] = values[i];
      }
    }
  }
  return all;
}

double distance(const std::vector<double>& a, const std::vector<double>& b) {
  double ab = 0;
  double aa = 0;
  double bb = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    ab += a[i] * b[i];
    aa += a[i] * a[i];
    bb += b[i] * b[i];
  }
  return 1 - ab / std::sqrt(aa * bb);
}

struct Case {
  const char* spec;
  int size;
  int members = 1;
  double gain = 1;
  double decay = 1;
  bool exact = false;
};

class SimilarityProbeTest : public testing::TestWithParam<Case> {};

/// The chunks that a selection takes one entry each of; all of it for an exact one.
std::vector<std::pair<std::size_t, std::size_t>> chunks(bool exact) {
  if (exact) return {{40, 1293}};
  std::vector<std::pair<std::size_t, std::size_t>> all;
  for (std::size_t i = 40; i < 1043; i += 10)
    all.emplace_back(i, std::min<std::size_t>(1043, i + 10));
  for (std::size_t i = 1043; i < 1293; i += 5) all.emplace_back(i, i + 5);
  return all;
}

TEST_P(SimilarityProbeTest, SaysWhatAPlainStatementSays) {
  const Case& param = GetParam();
  const auto gradients = gradients_of(param.size);
  const Life life = live(param.size, param.spec, true);
  for (std::size_t step = 0; step < kSteps; ++step) {
    const Reading& seen = life.readings[step];
    // y
    const auto before = flat(life.memories[step], param.members);
    std::vector<double> y(1302);
    for (std::size_t i = 0; i < y.size(); ++i) {
      for (const auto& gradient : gradients[step]) y[i] += gradient[i] / param.size;
      for (const auto& memory : before) {
        y[i] += param.decay * memory[i] / static_cast<double>(before.size());
      }
      y[i] *= param.gain;
    }
    double all = 0;
    double left = 0;
    double taken = 0;
    int missed = 0;
    int kept = 0;
    for (const auto& [begin, end] : chunks(param.exact)) {
      std::vector<std::size_t> order;
      for (std::size_t i = begin; i < end; ++i) {
        order.push_back(i);
        all += y[i] * y[i];
        left += std::pow(y[i] - life.means[step][i], 2);
      }
      std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
        return std::abs(y[a]) > std::abs(y[b]);
      });
      order.resize(param.exact ? 150 : 1);  // 100.3 + 50
      for (const std::size_t i : order) {
        ++kept;
        taken += y[i] * y[i];
        if (life.means[step][i] == 0) ++missed;
      }
    }
    ASSERT_TRUE(seen.contraction);
    EXPECT_DOUBLE_EQ(seen.contraction->hamming, static_cast<double>(missed) / kept);
    EXPECT_NEAR(seen.contraction->measured, left / all, 1e-5);
    EXPECT_NEAR(seen.contraction->exact, 1 - taken / all, 1e-5);

    const auto after = flat(life.memories[step + 1], param.members);
    std::vector<double> distances;
    for (std::size_t a = 0; a < after.size(); ++a) {
      for (std::size_t b = 0; b < a; ++b) distances.push_back(distance(after[a], after[b]));
    }
    ASSERT_TRUE(seen.distances);
    double mean = 0;
    for (const double one : distances) mean += one / static_cast<double>(distances.size());
    EXPECT_NEAR(seen.distances->mean, mean, 1e-9);
    EXPECT_NEAR(seen.distances->least, *std::min_element(distances.begin(), distances.end()), 1e-9);
    EXPECT_NEAR(seen.distances->most, *std::max_element(distances.begin(), distances.end()), 1e-9);

    ASSERT_TRUE(seen.quantiles);
    const auto expect_quantiles = [&](const std::vector<float>& quantiles, std::size_t learner) {
      std::vector<double> sorted(after[learner].begin() + 40, after[learner].begin() + 1293);
      std::sort(sorted.begin(), sorted.end());
      ASSERT_EQ(quantiles.size(), seen.quantiles->at.size());
      for (std::size_t q = 0; q < quantiles.size(); ++q) {
        EXPECT_EQ(quantiles[q],
                  sorted[static_cast<std::size_t>(std::llround(seen.quantiles->at[q] * 1252))]);
      }
    };
    expect_quantiles(seen.quantiles->first, 0);
    expect_quantiles(seen.quantiles->second, 1);
  }
}

TEST_P(SimilarityProbeTest, ChangesNothing) {
  const Case& param = GetParam();
  const Life seen = live(param.size, param.spec, true);
  const Life alone = live(param.size, param.spec, false);
  EXPECT_EQ(seen.means, alone.means);
  EXPECT_EQ(seen.memories, alone.memories);
  EXPECT_EQ(seen.traffic, alone.traffic);
}

INSTANTIATE_TEST_SUITE_P(
    Methods, SimilarityProbeTest,
    testing::Values(Case{"scalecom,rate=10", 4}, Case{"scalecom,rate=10,beta=1", 3},
                    Case{"scalecom,rate=10,decay=0.8,leaders=sharded", 5, 1, 1, 0.8},
                    Case{"scalecom,rate=10,values=bf16,select=random", 2},
                    Case{"scalecom,rate=10,select=exact", 3, 1, 1, 1, true},
                    Case{"weighted,rate=10,a=2,b=0.5", 3, 1, 2, 0.5},
                    Case{"scalecom,rate=10,groups=2", 6, 2},
                    Case{"scalecom,rate=10,groups=3,decay=0.9", 6, 3, 1, 0.9}),
    [](const auto& info) { return std::to_string(info.index); });

TEST(SimilarityProbeGapsTest, ADenseMethodHasNothingToCompare) {
  const Reading seen = live(3, "dense", true).readings.back();
  EXPECT_FALSE(seen.distances || seen.contraction || seen.quantiles);
  const nlohmann::ordered_json line = to_json(seen);
  for (const char* key : {"cosine_distance", "cosine_distance_min", "cosine_distance_max",
                          "hamming", "contraction", "contraction_exact", "lemma1_bound", "qq"}) {
    EXPECT_TRUE(line.at(key).is_null()) << key;
  }
}

TEST(SimilarityProbeGapsTest, OneLearnerIsNotCompared) {
  for (const auto& [size, spec] :
       {std::pair(1, "scalecom,rate=10"), std::pair(3, "scalecom,rate=10,groups=3")}) {
    const Reading seen = live(size, spec, true).readings.back();
    EXPECT_FALSE(seen.distances || seen.quantiles);
    ASSERT_TRUE(seen.contraction);
    EXPECT_EQ(seen.contraction->hamming, 0);
    EXPECT_NEAR(seen.contraction->measured, seen.contraction->exact, 1e-6);
  }
}

TEST(SimilarityProbeGapsTest, InAWarmUpAllIsSent) {
  const auto readings = live(2, "scalecom,rate=10,warmup=3", true).readings;
  EXPECT_FALSE(readings[2].contraction || readings[2].distances);
  EXPECT_TRUE(readings[3].contraction && readings[3].distances);
}

TEST(SimilarityProbeGapsTest, RanksThatChooseForThemselvesHaveMemoriesToCompare) {
  for (const char* spec : {"topk,rate=10", "dgc,rate=10"}) {
    const Reading seen = live(3, spec, true).readings.back();
    EXPECT_TRUE(seen.distances && seen.quantiles) << spec;
    EXPECT_FALSE(seen.contraction) << spec;
  }
}

}  // namespace
}  // namespace train::similarity
