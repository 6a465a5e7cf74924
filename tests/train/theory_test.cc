#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "scalecom/core/text.h"
#include "tests/train/folder.h"
#include "train/loop/trainer.h"
#include "train/runs/run_folder.h"

// What the paper's theory says of vectors, asked of those that real trainings bring.
namespace train {
namespace {

using namespace std::chrono_literals;
using nlohmann::ordered_json;

class Nobody final : public loop::Observer {
  void on_start(std::int64_t, std::int64_t) override {}
  void on_step(std::int64_t, double) override {}
  void on_metrics(const ordered_json&) override {}
};

constexpr std::int64_t kSteps = 96;

/// A line for each step of a training.
std::vector<ordered_json> lines_of(const std::filesystem::path& out, const std::string& method,
                                   int learners) {
  runs::Request request;
  request.task = "synthetic";
  request.method = method;
  request.learners = learners;
  request.steps = kSteps;
  request.similarity_every = 1;
  loop::Processes processes(60s);
  const std::atomic<bool> stop{false};
  Nobody nobody;
  loop::train(request, {out, {}, {}, {}}, processes, stop, nobody);
  return runs::RunFolder::open(out).similarity();
}

double mean(const std::vector<ordered_json>& lines, std::size_t first, std::size_t count,
            const char* key) {
  double sum = 0;
  for (std::size_t i = first; i < first + count; ++i) sum += lines[i][key].get<double>();
  return sum / static_cast<double>(count);
}

struct Case {
  const char* method;
  int learners;
  int leaders;  ///< that take turns
};

class TheoryTest : public testing::TestWithParam<Case> {};

// Over every round in which each learner has led once, whatever the part of the training.
TEST_P(TheoryTest, Lemma1BoundsTheContraction) {
  const auto [method, learners, leaders] = GetParam();
  const Folder folder;
  const auto lines = lines_of(folder / "run", method, learners);
  ASSERT_EQ(lines.size(), static_cast<std::size_t>(kSteps));
  const auto round = static_cast<std::size_t>(leaders);
  for (std::size_t first = 0; first + round <= lines.size(); ++first) {
    EXPECT_LE(mean(lines, first, round, "contraction"), mean(lines, first, round, "lemma1_bound"))
        << "from step " << first + 1;
    EXPECT_LE(mean(lines, first, round, "contraction_exact"),
              mean(lines, first, round, "contraction") + 1e-6);
  }
}

INSTANTIATE_TEST_SUITE_P(
    Trainings, TheoryTest,
    testing::Values(Case{"scalecom,rate=20,beta=1", 2, 2}, Case{"scalecom,rate=20,beta=1", 8, 8},
                    Case{"scalecom,rate=20,beta=0.1", 4, 4},
                    Case{"scalecom,rate=20,beta=0.1", 16, 16},
                    Case{"scalecom,rate=20,beta=0.1,select=exact", 8, 8},
                    Case{"scalecom,rate=20,beta=0.1,leaders=sharded", 8, 8},
                    Case{"scalecom,rate=20,beta=0.1,decay=0.99,groups=2", 8, 4}),
    [](const auto& info) {
      return scalecom::core::concat("case", info.index, "with", info.param.learners, "learners");
    });

// The more learners there are, the less one of them knows of what all of them have to send.
TEST(TheoryOfLeadersTest, TheyAreWrongMoreOftenTheMoreLearnersThereAre) {
  const Folder folder;
  double last = 0;
  for (const int learners : {2, 4, 16}) {
    const auto lines = lines_of(folder / std::to_string(learners), "scalecom,rate=20", learners);
    const double hamming = mean(lines, 0, lines.size(), "hamming");
    EXPECT_GT(hamming, last) << learners;
    last = hamming;
  }
}

}  // namespace
}  // namespace train
