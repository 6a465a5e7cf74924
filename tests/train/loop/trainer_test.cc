#include "train/loop/trainer.h"

#include <gtest/gtest.h>

#include <chrono>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>

#include "scalecom/core/error.h"
#include "tests/device.h"
#include "tests/train/folder.h"
#include "train/runs/run_folder.h"
#include "train/similarity/saved.h"

namespace train::loop {
namespace {

using namespace std::chrono_literals;
namespace fs = std::filesystem;
using nlohmann::ordered_json;

/// Stops the run when a step is over.
class Stopper final : public Observer {
 public:
  explicit Stopper(std::int64_t at = -1) : at_(at) {}
  void on_start(std::int64_t done, std::int64_t) override { started = done; }
  void on_step(std::int64_t done, double) override {
    if (done == at_) stop = true;
  }
  void on_metrics(const ordered_json&) override { ++lines; }

  std::atomic<bool> stop{false};
  std::int64_t started = -1;
  int lines = 0;

 private:
  std::int64_t at_;
};

runs::Request request(const std::string& method, int learners = 4) {
  runs::Request request;
  request.task = "synthetic";
  request.method = method;
  request.learners = learners;
  request.steps = 70;
  return request;
}

Ending run(const runs::Request& request, Place place, Stopper& stopper) {
  Processes processes(60s);
  place.device = scalecom::testing::device();
  return train(request, place, processes, stopper.stop, stopper);
}

/// What two runs of the same configuration have in common: all but the time they took.
ordered_json timeless(ordered_json json) {
  for (const char* key :
       {"seconds", "peak_bytes", "bytes_per_rank", "whole_run_rate", "device_peak_bytes"})
    json.erase(key);
  return json;
}

void expect_same(const fs::path& a, const fs::path& b) {
  const runs::RunFolder one = runs::RunFolder::open(a);
  const runs::RunFolder other = runs::RunFolder::open(b);
  EXPECT_EQ(timeless(one.result()), timeless(other.result()));
  ASSERT_EQ(one.metrics().size(), other.metrics().size());
  for (std::size_t i = 0; i < one.metrics().size(); ++i) {
    EXPECT_EQ(timeless(one.metrics()[i]), timeless(other.metrics()[i]));
  }
}

class TrainerTest : public testing::TestWithParam<const char*> {
 protected:
  Folder folder_;
};

INSTANTIATE_TEST_SUITE_P(Methods, TrainerTest,
                         testing::Values("dense", "scalecom,rate=10,warmup=5,check=conserve",
                                         "scalecom,rate=10,select=random",
                                         "scalecom,rate=10,leaders=sharded,values=bf16"));

// Of epochs of a few steps, most of the time would go into figures.
TEST(TrainerFiguresTest, AreTakenAHundredTimesAtMost) {
  const Folder folder;
  runs::Request many = request("dense");
  many.steps = {};
  many.batch = 512;
  many.epochs = 250;
  Stopper whole;
  EXPECT_TRUE(run(many, {folder / "straight", {}, {}, {}}, whole).is_complete());
  EXPECT_EQ(whole.lines, 84);  // of every third epoch, and of the last step
  const auto lines = runs::RunFolder::open(folder / "straight").metrics();
  EXPECT_EQ(lines.front()["epoch"], 3);
  EXPECT_EQ(lines.back()["epoch"], 250);
  const Place place{folder / "stopped", {}, {}, {}};
  Stopper first(200);
  EXPECT_FALSE(run(many, place, first).is_complete());
  Stopper last;
  EXPECT_TRUE(run({}, {{}, folder / "stopped", {}, {}}, last).is_complete());
  expect_same(folder / "straight", folder / "stopped");
}

TEST_P(TrainerTest, ResumedEqualsUninterrupted) {
  Stopper whole;
  const Place straight{folder_ / "straight", {}, {}, {}};
  EXPECT_TRUE(run(request(GetParam()), straight, whole).is_complete());
  EXPECT_EQ(whole.lines, 3);

  const Place place{folder_ / "stopped", {}, 25, {}};
  Stopper first(13);
  EXPECT_EQ(run(request(GetParam()), place, first).done,
            14);  // learners hear of it in the next step
  const Place resume{{}, folder_ / "stopped", 25, {}};
  Stopper second(40);
  EXPECT_EQ(run({}, resume, second).done, 41);
  EXPECT_EQ(second.started, 14);
  Stopper last;
  EXPECT_TRUE(run({}, resume, last).is_complete());
  expect_same(folder_ / "straight", folder_ / "stopped");
}

TEST_P(TrainerTest, GoesOnFromTheLastCheckpointAfterACrash) {
  Stopper whole;
  run(request(GetParam()), {folder_ / "straight", {}, {}, {}}, whole);

  // A crash at step 60: what was written after the checkpoint of step 50 is still there.
  Stopper first(59);
  run(request(GetParam()), {folder_ / "crashed", {}, 25, {}}, first);
  fs::remove_all(runs::RunFolder::open(folder_ / "crashed").last_checkpoint()->path);
  fs::create_directories(folder_ / "crashed/checkpoints/unfinished/memories");
  runs::RunFolder::open(folder_ / "crashed").append({{"step", 60}});
  Stopper second;
  EXPECT_TRUE(run({}, {{}, folder_ / "crashed", {}, {}}, second).is_complete());
  EXPECT_EQ(second.started, 50);
  expect_same(folder_ / "straight", folder_ / "crashed");
}

TEST_P(TrainerTest, AnotherNumberOfLearnersGoesOn) {
  Stopper first(13);
  run(request(GetParam()), {folder_ / "run", {}, {}, {}}, first);
  Stopper second(30);
  Place place{{}, folder_ / "run", {}, {}};
  place.learners = 3;
  EXPECT_EQ(run({}, place, second).done, 31);
  EXPECT_EQ(second.started, 14);
  EXPECT_EQ(runs::RunFolder::open(folder_ / "run").config().learners, 3);
  place.learners = 8;
  Stopper last;
  EXPECT_TRUE(run({}, place, last).is_complete());
  const runs::RunFolder ended = runs::RunFolder::open(folder_ / "run");
  EXPECT_EQ(ended.result()["learners"], 8);
  const double samples = 16 * (14 * 4 + 17 * 3 + 39 * 8);
  EXPECT_EQ(ended.metrics().back()["epoch"], samples / 2048);
}

// Who does not say how many learners gets those that the run had last.
TEST_P(TrainerTest, AChangeOfLearnersStays) {
  Stopper first(13);
  run(request(GetParam()), {folder_ / "run", {}, {}, {}}, first);
  fs::copy(folder_ / "run", folder_ / "crashed", fs::copy_options::recursive);
  Place place{{}, folder_ / "run", {}, {}};
  place.learners = 3;
  Stopper second;
  EXPECT_TRUE(run({}, place, second).is_complete());

  // A crash before the first checkpoint of the three.
  place.resume = folder_ / "crashed";
  Stopper third(15);
  run({}, place, third);
  fs::remove_all(runs::RunFolder::open(folder_ / "crashed").last_checkpoint()->path);
  Stopper last;
  EXPECT_TRUE(run({}, {{}, folder_ / "crashed", {}, {}}, last).is_complete());
  EXPECT_EQ(last.started, 14);
  expect_same(folder_ / "run", folder_ / "crashed");
}

TEST_P(TrainerTest, ThreadsDoNotChangeAnything) {
  Stopper stopper;
  run(request(GetParam()), {folder_ / "one", {}, {}, 1}, stopper);
  run(request(GetParam()), {folder_ / "four", {}, {}, 4}, stopper);
  expect_same(folder_ / "one", folder_ / "four");
}

runs::Request compared(const char* method, std::int64_t every) {
  runs::Request asked = request(method);
  asked.similarity_every = every;
  return asked;
}

std::string bytes_of(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

void expect_same_files(const fs::path& a, const fs::path& b) {
  std::size_t files = 0;
  for (const auto& entry : fs::recursive_directory_iterator(a)) {
    if (entry.path().extension() != ".safetensors") continue;
    const fs::path name = fs::relative(entry.path(), a);
    EXPECT_EQ(bytes_of(entry.path()), bytes_of(b / name)) << name;
    ++files;
  }
  EXPECT_EQ(files, 5U) << "the model and four memories";
}

TEST_P(TrainerTest, ComparingLearnersChangesNothing) {
  Stopper stopper;
  run(request(GetParam()), {folder_ / "plain", {}, {}, {}}, stopper);
  run(compared(GetParam(), 7), {folder_ / "compared", {}, {}, {}}, stopper);
  expect_same(folder_ / "plain", folder_ / "compared");
  expect_same_files(runs::RunFolder::open(folder_ / "plain").last_checkpoint()->path,
                    runs::RunFolder::open(folder_ / "compared").last_checkpoint()->path);
  EXPECT_FALSE(fs::exists(folder_ / "plain/similarity.jsonl"));
  const auto lines = runs::RunFolder::open(folder_ / "compared").similarity();
  ASSERT_EQ(lines.size(), 10U);
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const auto step = static_cast<std::int64_t>(7 * (i + 1));
    EXPECT_EQ(lines[i]["step"], step);
    EXPECT_EQ(lines[i]["epoch"], static_cast<double>(step * 64) / 2048);
  }
}

// The memories of a checkpoint are those of its step.
TEST_P(TrainerTest, MemoriesAreAsFarApartAsInTheCheckpoint) {
  Stopper stopper;
  run(compared(GetParam(), 35), {folder_ / "run", {}, 35, {}}, stopper);
  const runs::RunFolder folder = runs::RunFolder::open(folder_ / "run");
  const auto lines = folder.similarity();
  const auto checkpoints = folder.checkpoints();
  ASSERT_EQ(lines.size(), 2U);
  ASSERT_EQ(checkpoints.size(), 2U);
  for (std::size_t i = 0; i < 2; ++i) {
    const similarity::Similarity saved = similarity::measure(checkpoints[i].path / "memories");
    EXPECT_EQ(lines[i]["step"], saved.step);
    if (saved.tensors.empty()) {
      EXPECT_TRUE(lines[i]["cosine_distance"].is_null());
    } else {
      EXPECT_NEAR(lines[i]["cosine_distance"], saved.mean_distance(), 1e-12);
    }
  }
}

TEST_P(TrainerTest, AStoppedRunHasTheSimilarityOfAStraightOne) {
  Stopper whole;
  run(compared(GetParam(), 3), {folder_ / "straight", {}, {}, {}}, whole);

  Stopper first(13);
  run(compared(GetParam(), 3), {folder_ / "stopped", {}, 25, {}}, first);
  const Place resume{{}, folder_ / "stopped", 25, {}};
  Stopper second(59);
  run({}, resume, second);
  // As after a crash: lines beyond the last checkpoint, and one that was cut short.
  fs::remove_all(runs::RunFolder::open(folder_ / "stopped").last_checkpoint()->path);
  std::ofstream(folder_ / "stopped/similarity.jsonl", std::ios::app) << "{\"step\": 63, \"ep";
  Stopper last;
  EXPECT_TRUE(run({}, resume, last).is_complete());
  EXPECT_EQ(last.started, 50);
  const auto lines = runs::RunFolder::open(folder_ / "stopped").similarity();
  EXPECT_EQ(lines.size(), 23U);
  EXPECT_EQ(lines, runs::RunFolder::open(folder_ / "straight").similarity());
}

TEST(TrainerCountsTest, BytesAndRates) {
  const Folder folder;
  Stopper stopper;
  run(request("dense"), {folder / "dense", {}, {}, {}}, stopper);
  const auto dense = runs::RunFolder::open(folder / "dense").result();
  EXPECT_DOUBLE_EQ(dense["effective_rate"], 1);
  EXPECT_DOUBLE_EQ(dense["bytes_per_rank_step"],
                   runs::dense_bytes_per_rank_step(dense["parameters"], 4));
  for (const char* key : {"task", "method", "learners", "seed", "metric", "value", "steps",
                          "seconds", "bytes_per_rank_step", "effective_rate", "peak_bytes"}) {
    EXPECT_TRUE(dense.contains(key)) << key;
  }

  run(request("scalecom,rate=100,warmup=20"), {folder / "sparse", {}, {}, {}}, stopper);
  EXPECT_GT(runs::RunFolder::open(folder / "sparse").result()["effective_rate"], 2);

  run(request("dense", 1), {folder / "alone", {}, {}, {}}, stopper);
  const auto alone = runs::RunFolder::open(folder / "alone").result();
  EXPECT_EQ(alone["bytes_per_rank_step"], 0);
  EXPECT_TRUE(alone["effective_rate"].is_null());
}

TEST(TrainerEndTest, ACompleteRunIsLeftAsItIs) {
  const Folder folder;
  Stopper stopper;
  run(request("dense", 2), {folder / "run", {}, {}, {}}, stopper);
  const auto result = runs::RunFolder::open(folder / "run").result();
  Stopper again;
  EXPECT_TRUE(run({}, {{}, folder / "run", {}, {}}, again).is_complete());
  EXPECT_EQ(again.started, -1);
  EXPECT_EQ(runs::RunFolder::open(folder / "run").result(), result);
}

// A mistake in one command does not reach the next.
TEST(TrainerEndTest, LearnersThatDoNotDivideIntoGroupsAreRefusedAndNothingChanges) {
  const Folder folder;
  Stopper first(20);
  runs::Request grouped = request("scalecom,rate=10");
  grouped.groups = 2;
  run(grouped, {folder / "run", {}, {}, {}}, first);
  Place place{{}, folder / "run", {}, {}};
  place.learners = 3;
  Stopper second;
  EXPECT_THROW(run({}, place, second), scalecom::core::UsageError);
  EXPECT_EQ(runs::RunFolder::open(folder / "run").config().learners, 4);
  Stopper third;
  EXPECT_TRUE(run({}, {{}, folder / "run", {}, {}}, third).is_complete());
}

TEST(TrainerEndTest, ALostLineOfMetricsIsNotTakenFromAnotherStep) {
  const Folder folder;
  Stopper stopper;
  run(request("dense", 2), {folder / "run", {}, 30, {}}, stopper);
  const auto result = runs::RunFolder::open(folder / "run").result();
  fs::remove(folder / "run/result.json");
  runs::RunFolder::open(folder / "run").forget_lines_after(65);
  Stopper again;
  const std::string message = message_of<scalecom::core::IoError>([&] {
    run({}, {{}, folder / "run", {}, {}}, again);
  });
  EXPECT_NE(message.find("metrics.jsonl has lost its line of step 70"), std::string::npos)
      << message;

  // As the message says.
  fs::remove_all(runs::RunFolder::open(folder / "run").last_checkpoint()->path);
  Stopper last;
  EXPECT_TRUE(run({}, {{}, folder / "run", {}, {}}, last).is_complete());
  EXPECT_EQ(timeless(runs::RunFolder::open(folder / "run").result()), timeless(result));
}

TEST(TrainerEndTest, DivergenceIsAnError) {
  const Folder folder;
  Stopper stopper;
  runs::Request wild = request("dense", 2);
  wild.learning_rate = 1e30;
  EXPECT_THROW(run(wild, {folder / "run", {}, {}, {}}, stopper), scalecom::core::CheckError);
}

TEST(TrainerEndTest, ADamagedCheckpointIsRefusedByName) {
  const Folder folder;
  Stopper stopper(20);
  run(request("scalecom,rate=10"), {folder / "run", {}, {}, {}}, stopper);
  const auto checkpoint = runs::RunFolder::open(folder / "run").last_checkpoint()->path;
  fs::resize_file(checkpoint / "model.safetensors", 100);
  Stopper again;
  const std::string message = message_of<scalecom::core::UsageError>([&] {
    run({}, {{}, folder / "run", {}, {}}, again);
  });
  EXPECT_NE(message.find("model.safetensors"), std::string::npos) << message;
}

}  // namespace
}  // namespace train::loop
