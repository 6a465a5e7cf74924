#include "comparison/records.h"

#include <gtest/gtest.h>

#include <fstream>

#include "scalecom/core/error.h"
#include "tests/comparison/planned.h"

namespace comparison {
namespace {

using scalecom::core::UsageError;
using train::Folder;
using train::message_of;

constexpr std::int64_t kSamples = 2048;

/// The mistake that a plan is told.
std::string refusal(const Plan& plan) {
  return message_of<UsageError>([&] { const Records records(plan); });
}

TEST(Records, AreTakenUpWithTheSameSettingsAlone) {
  const Folder folder;
  Plan plan = small_plan(folder);
  const Records first(plan);
  const Records again(plan);

  Plan more = plan;
  more.entrants = parse_methods("half");
  more.learners = {1, 8};
  more.large_batch = 1;
  const Records joined(more);

  Plan other = plan;
  other.request.steps = 41;
  EXPECT_NE(refusal(other).find("steps 40 instead of 41"), std::string::npos) << refusal(other);
  EXPECT_NE(refusal(other).find("--out"), std::string::npos);
  other = plan;
  other.request.seed = 2;
  EXPECT_NE(refusal(other).find("seed 1 instead of 2"), std::string::npos);
  other = plan;
  other.warmup = 0.2;
  EXPECT_NE(refusal(other).find("warmup"), std::string::npos);
  other = plan;
  other.request.task = "fashion-mnist";
  EXPECT_NE(refusal(other).find("task"), std::string::npos);
  other = plan;
  other.request.batch = 3;
  EXPECT_NE(refusal(other).find("batch null instead of 3"), std::string::npos) << refusal(other);
  other = plan;
  other.request.learning_rate = 0.5;
  EXPECT_NE(refusal(other).find("learning_rate null instead of 0.5"), std::string::npos);
  other = plan;
  other.request.data = "/data";
  EXPECT_NE(refusal(other).find("data"), std::string::npos);
}

TEST(Plan, TrainsForThreeTenthsOfTheRecipeUnlessTold) {
  const Folder folder;
  Plan plan = small_plan(folder);
  plan.request.steps.reset();
  const double epochs = 0.3 * train::tasks::recipe("synthetic").epochs;
  EXPECT_DOUBLE_EQ(usual_epochs("synthetic"), epochs);
  EXPECT_EQ(settings_of(plan)["epochs"], epochs);
  plan.request.steps = 40;
  EXPECT_EQ(settings_of(plan)["epochs"], nullptr);
}

TEST(Records, DoNotTakeAFolderOfSomethingElse) {
  const Folder folder;
  Plan plan = small_plan(folder);
  std::filesystem::create_directories(plan.out);
  std::ofstream(plan.out / "notes") << "mine";
  EXPECT_NE(refusal(plan).find("not empty"), std::string::npos);
  plan.out = plan.out / "notes";
  EXPECT_NE(refusal(plan).find("is a file"), std::string::npos);
  plan.out = plan.out / "below";
  EXPECT_NE(refusal(plan).find("cannot be written"), std::string::npos);
}

TEST(Records, KnowWhatIsOver) {
  const Folder folder;
  const Plan plan = small_plan(folder);
  Records records(plan);
  const std::vector<PlannedRun> runs = runs_of(plan, kSamples);
  ASSERT_EQ(runs.size(), 6U);
  for (const PlannedRun& run : runs) EXPECT_FALSE(records.result(run));

  pretend(runs[0], 90);
  EXPECT_EQ(records.result(runs[0]).value()["value"], 90);
  EXPECT_EQ(records.steps_done(runs[0]), 40);

  train::runs::RunFolder::create(runs[1].folder, runs[1].config);
  EXPECT_TRUE(records.is_begun(runs[1]));
  EXPECT_FALSE(records.result(runs[1]));
  EXPECT_EQ(records.steps_done(runs[1]), 0);
  std::filesystem::create_directories(runs[1].folder / "checkpoints" / "step-000000017");
  EXPECT_EQ(records.steps_done(runs[1]), 17);

  records.write_failure(runs[2], "it diverged");
  EXPECT_EQ(records.result(runs[2]).value()["failure"], "it diverged");
  EXPECT_EQ(records.steps_done(runs[2]), 40);
}

TEST(Records, ARunOfOtherOptionsIsNamed) {
  const Folder folder;
  const Plan plan = small_plan(folder);
  const Records records(plan);
  const PlannedRun run = runs_of(plan, kSamples)[0];
  train::runs::Config other = run.config;
  other.weight_decay = 0.25;
  train::runs::RunFolder::create(run.folder, other);
  const std::string message = message_of<UsageError>([&] { records.result(run); });
  EXPECT_NE(message.find(run.folder.string()), std::string::npos) << message;
  EXPECT_NE(message.find("weight_decay 0.25"), std::string::npos) << message;
}

TEST(Records, FiguresOfOtherOptionsAreNamed) {
  const Folder folder;
  const Plan plan = small_plan(folder);
  Records records(plan);
  const Entrant& entrant = plan.entrants[1];
  EXPECT_FALSE(records.measured(entrant));
  records.write_measured(entrant, figures_of(entrant, "constant"));
  EXPECT_EQ(records.measured(entrant), figures_of(entrant, "constant"));
  const Entrant other{entrant.label, "scalecom,rate=7"};
  const std::string message = message_of<UsageError>([&] { records.measured(other); });
  EXPECT_NE(message.find("scalecom,rate=7"), std::string::npos) << message;
}

TEST(Plan, RunsAreEveryMethodWithEveryNumberOfLearners) {
  const Folder folder;
  const Plan plan = small_plan(folder);
  const std::vector<PlannedRun> runs = runs_of(plan, kSamples);
  std::vector<std::string> names;
  for (const PlannedRun& run : runs) {
    names.push_back(run.folder.filename());
    EXPECT_EQ(run.large_batch, run.config.learners == 12);
  }
  EXPECT_EQ(names, (std::vector<std::string>{"dense-2", "scalecom-2", "dense-4", "scalecom-4",
                                             "dense-12", "scalecom-12"}));
  EXPECT_EQ(runs[1].config.method, "scalecom,rate=100,beta=0.1,warmup=4");
}

TEST(Plan, EveryRunSeesAsManySamplesWhereEpochsAreGiven) {
  const Folder folder;
  Plan plan = small_plan(folder);
  plan.request.steps.reset();
  plan.request.epochs = 2;
  for (const PlannedRun& run : runs_of(plan, 48 * 16)) EXPECT_EQ(run.work(), 2 * 48 * 16);
}

// Names of files are what every system takes, and different labels never share one.
TEST(Plan, LabelsBecomeNamesOfFiles) {
  const Folder folder;
  Plan plan = small_plan(folder);
  plan.entrants = {{"scalecom,rates=a/*:5;b?:7", "dense"}, {"scalecom,rates=a__:5;b?:7", "dense"}};
  const std::vector<PlannedRun> runs = runs_of(plan, kSamples);
  const std::string name = runs[0].folder.filename();
  EXPECT_EQ(name.find_first_of("/*;?:"), std::string::npos) << name;
  EXPECT_NE(runs[0].folder, runs[1].folder);
  EXPECT_EQ(runs[0].folder.parent_path(), plan.out / "runs");
}

TEST(Plan, MistakesAreRefused) {
  const Folder folder;
  const auto refused = [&](auto change) {
    Plan plan = small_plan(folder);
    change(plan);
    EXPECT_THROW(check(plan), UsageError);
  };
  EXPECT_NO_THROW(check(small_plan(folder)));
  refused([](Plan& plan) { plan.learners = {}; });
  refused([](Plan& plan) { plan.learners = {2, 0}; });
  refused([](Plan& plan) { plan.learners = {2, 4, 2}; });
  refused([](Plan& plan) { plan.learners = {1000}; });  // 3,000 at the large batch
  refused([](Plan& plan) { plan.large_batch = 0; });
  refused([](Plan& plan) { plan.large_batch = (1 << 30) + 1; });  // times 4 it would be 4 again
  refused([](Plan& plan) { plan.warmup = 1; });
  refused([](Plan& plan) { plan.warmup = -0.1; });
  refused([](Plan& plan) { plan.request.task = "nope"; });
  refused([](Plan& plan) { plan.request.steps = 0; });
  refused([](Plan& plan) { plan.request.batch = 0; });
  refused([](Plan& plan) { plan.request.seed = -1; });
  refused([](Plan& plan) { plan.timed_elements = 0; });
  refused([](Plan& plan) { plan.timed_elements = 1'000'000'001; });
  refused([](Plan& plan) { plan.timed_repeats = 0; });
  Plan plan = small_plan(folder);
  plan.large_batch = 2;
  EXPECT_EQ(runs_of(plan, kSamples).back().config.learners, 8);
}

}  // namespace
}  // namespace comparison
