#include "train/loop/learner.h"

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <stdexcept>
#include <vector>

#include "scalecom/comm/inproc/inproc.h"
#include "tests/train/folder.h"
#include "tests/train/line_task.h"

namespace train::loop {
namespace {

constexpr int kLearners = 5;
constexpr std::int64_t kSteps = 6;

runs::Config config() {
  runs::Config config;
  config.task = "line";
  config.method = config.spec = "scalecom,rate=2";
  config.learners = kLearners;
  config.steps = kSteps;
  config.learning_rate = 0.1;
  return config;
}

class Watcher final : public Observer {
 public:
  void on_start(std::int64_t /*done*/, std::int64_t /*steps*/) override {}
  void on_step(std::int64_t /*done*/, double /*loss*/) override {}
  void on_metrics(const nlohmann::ordered_json& /*line*/) override {}
};

/// The weights in the end.
std::vector<float> train(std::unique_ptr<LineTask> task) {
  const Folder folder;
  const runs::Config settings = config();
  Replica replica(std::move(task), settings, 2);
  runs::RunFolder run = runs::RunFolder::create(folder / "run", settings);
  Watcher watcher;
  const std::atomic<bool> stop = false;
  const machine::DeviceMemory memory({});
  const Job job{settings, replica, run, watcher, stop, 0, memory, {}, {}};
  scalecom::comm::inproc::run(
      kLearners, [&](scalecom::comm::Communicator& world) { Learner(job, world).run(); });
  return {replica.weights().begin(), replica.weights().end()};
}

TEST(LearnerTest, JoinedLearnersAreAskedForTogetherAndLearnTheSame) {
  std::vector<std::size_t> asked;
  auto joined = std::make_unique<LineTask>();
  joined->on_joined = [&](std::size_t learners) { asked.push_back(learners); };
  const auto weights = train(std::move(joined));
  EXPECT_EQ(asked, std::vector<std::size_t>(kSteps, kLearners));
  EXPECT_EQ(weights, train(std::make_unique<LineTask>()));
  EXPECT_NE(weights, std::vector<float>(weights.size(), 1));
}

TEST(LearnerTest, AFailureOfJoinedLearnersReachesAll) {
  auto task = std::make_unique<LineTask>();
  task->on_joined = [](std::size_t) {};
  task->on_gradient = [](const tasks::Shard& shard) {
    if (shard.learner == 3 && shard.step == 2) throw std::runtime_error("no");
  };
  EXPECT_THROW(train(std::move(task)), std::exception);
}

}  // namespace
}  // namespace train::loop
