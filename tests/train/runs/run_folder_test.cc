#include "train/runs/run_folder.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "scalecom/core/error.h"
#include "scalecom/state/text_file.h"
#include "tests/train/folder.h"

namespace train::runs {
namespace {

namespace fs = std::filesystem;
using scalecom::core::UsageError;

Config config(std::int64_t seed = 1) {
  Request request;
  request.task = "synthetic";
  request.method = "dense";
  request.seed = seed;
  Config config = resolve(request);
  config.steps = 10;
  return config;
}

class RunFolderTest : public testing::Test {
 protected:
  std::string refusal(const fs::path& path, const Config& wanted) {
    return message_of<UsageError>([&] { RunFolder::create(path, wanted); });
  }

  Folder folder_;
  fs::path path_ = folder_ / "deep/run";
};

TEST_F(RunFolderTest, KeepsItsConfiguration) {
  RunFolder::create(path_, config(42));
  EXPECT_EQ(to_json(RunFolder::open(path_).config()), to_json(config(42)));
  EXPECT_FALSE(RunFolder::open(path_).is_complete());
}

TEST_F(RunFolderTest, KeepsWhatIsChangedLater) {
  RunFolder run = RunFolder::create(path_, config());
  Config other = config();
  other.learners = 4;
  run.change(other);
  EXPECT_EQ(run.config().learners, 4);
  EXPECT_EQ(RunFolder::open(path_).config().learners, 4);
}

TEST_F(RunFolderTest, AnEmptyFolderWillDo) {
  fs::create_directories(path_);
  RunFolder::create(path_, config());
}

TEST_F(RunFolderTest, RefusesAFolderThatIsTaken) {
  RunFolder run = RunFolder::create(path_, config());
  EXPECT_NE(refusal(path_, config(2)).find("holds another run ('dense', seed 1)"),
            std::string::npos);
  EXPECT_NE(refusal(path_, config()).find("--resume"), std::string::npos);
  run.write_result({{"value", 1}});
  EXPECT_NE(refusal(path_, config()).find("complete"), std::string::npos);
  EXPECT_NE(refusal(folder_ / "deep", config()).find("not empty"), std::string::npos);
}

TEST_F(RunFolderTest, RefusesWhatCannotBeWritten) {
  std::ofstream(folder_ / "file") << "x";
  EXPECT_NE(refusal(folder_ / "file", config()).find("is a file"), std::string::npos);
  EXPECT_NE(refusal(folder_ / "file/below", config()).find("cannot be written"), std::string::npos);
}

TEST_F(RunFolderTest, RefusesDamagedConfigurations) {
  EXPECT_NE(message_of<UsageError>([&] { RunFolder::open(path_); }).find("no run"),
            std::string::npos);
  RunFolder::create(path_, config());
  for (const char* text : {"", "{", "[]", "{\"task\": 1}", "\xff\xfe"}) {
    std::ofstream(path_ / "config.json") << text;
    EXPECT_NE(message_of<UsageError>([&] { RunFolder::open(path_); }).find("config.json"),
              std::string::npos)
        << text;
  }
}

TEST_F(RunFolderTest, ForgetsMetricsThatWillComeAgain) {
  RunFolder run = RunFolder::create(path_, config());
  EXPECT_TRUE(run.metrics().empty());
  for (const int step : {2, 4, 6}) run.append({{"step", step}});
  std::ofstream(path_ / "metrics.jsonl", std::ios::app) << "{\"step\": 8, \"lo";  // cut short
  EXPECT_EQ(run.metrics().size(), 3U);
  run.forget_lines_after(4);
  run.append({{"step", 5}});
  ASSERT_EQ(run.metrics().size(), 3U);
  EXPECT_EQ(run.metrics().back()["step"], 5);
}

TEST_F(RunFolderTest, ForgetsSimilarityThatWillComeAgain) {
  RunFolder run = RunFolder::create(path_, config());
  run.forget_lines_after(0);
  EXPECT_FALSE(fs::exists(path_ / "similarity.jsonl")) << "nobody asked for it";
  for (const int step : {2, 4, 6}) run.append_similarity({{"step", step}});
  run.forget_lines_after(4);
  ASSERT_EQ(run.similarity().size(), 2U);
  EXPECT_EQ(run.similarity().back()["step"], 4);
  EXPECT_TRUE(run.metrics().empty());
}

TEST_F(RunFolderTest, MetricsThatItDidNotWriteEndThere) {
  RunFolder run = RunFolder::create(path_, config());
  for (const std::string line :
       {"{\"step\": 18446744073709551615}", "{\"step\": -1}", "{\"step\": 2.5}", "[]", "{}"}) {
    std::ofstream(path_ / "metrics.jsonl") << "{\"step\": 1}\n" << line << "\n{\"step\": 3}\n";
    EXPECT_EQ(run.metrics().size(), 1U) << line;
  }
  std::ofstream(path_ / "metrics.jsonl") << "{\"step\": 1, \"a\": " << std::string(1'000'000, '[')
                                         << std::string(1'000'000, ']') << "}\n";
  EXPECT_TRUE(run.metrics().empty());
  run.forget_lines_after(1);
}

TEST_F(RunFolderTest, KeepsTheLastTwoCheckpoints) {
  RunFolder run = RunFolder::create(path_, config());
  EXPECT_FALSE(run.last_checkpoint());
  for (const int step : {5, 10, 15}) {
    run.clear_unfinished_checkpoint();
    std::ofstream(run.unfinished_checkpoint() / "content") << step;
    EXPECT_NE(run.last_checkpoint() ? run.last_checkpoint()->step : 0, step);
    run.finish_checkpoint(step);
  }
  const auto kept = run.checkpoints();
  ASSERT_EQ(kept.size(), 2U);
  EXPECT_EQ(kept[0].step, 10);
  EXPECT_EQ(run.last_checkpoint()->step, 15);
  EXPECT_TRUE(fs::exists(run.last_checkpoint()->path / "content"));
  // The same step again, as after a stop right behind a checkpoint.
  run.clear_unfinished_checkpoint();
  run.finish_checkpoint(15);
  EXPECT_EQ(run.checkpoints().size(), 2U);
}

// A save that was killed has left some of its files, and the next may have fewer learners.
TEST_F(RunFolderTest, AnUnfinishedCheckpointBeginsEmpty) {
  RunFolder run = RunFolder::create(path_, config());
  run.clear_unfinished_checkpoint();
  fs::create_directory(run.unfinished_checkpoint() / "memories");
  std::ofstream(run.unfinished_checkpoint() / "memories" / "old") << "x";
  run.clear_unfinished_checkpoint();
  EXPECT_TRUE(fs::is_empty(run.unfinished_checkpoint()));
}

TEST_F(RunFolderTest, ForgetsItsCheckpointsAndNothingElse) {
  RunFolder run = RunFolder::create(path_, config());
  std::ofstream(path_ / "checkpoints" / "step-notes") << "x";
  std::ofstream(path_ / "checkpoints" / "step-7x") << "x";
  for (const int step : {5, 10}) {
    run.clear_unfinished_checkpoint();
    run.finish_checkpoint(step);
  }
  EXPECT_EQ(run.checkpoints().size(), 2U);
  run.forget_checkpoints();
  EXPECT_TRUE(run.checkpoints().empty());
  EXPECT_TRUE(fs::exists(path_ / "checkpoints" / "step-notes"));
  EXPECT_TRUE(fs::exists(path_ / "checkpoints" / "step-7x"));
}

TEST_F(RunFolderTest, JoinsTheTranscriptsOfLearners) {
  RunFolder run = RunFolder::create(path_, config());
  // Any of them may be the first to write.
  run.write_transcripts(1, std::vector<tasks::Transcript>{{"reference 2", "hypothesis 2"}});
  run.write_transcripts(
      0, std::vector<tasks::Transcript>{{"reference 0", "hypothesis 0"}, {"reference 1", ""}});
  run.write_transcripts(2, {});
  run.join_transcripts(3);
  using scalecom::state::read_text;
  EXPECT_EQ(read_text(path_ / "references.txt"), "reference 0\nreference 1\nreference 2\n");
  EXPECT_EQ(read_text(path_ / "hypotheses.txt"), "hypothesis 0\n\nhypothesis 2\n");
  for (const auto& entry : fs::directory_iterator(path_)) {
    EXPECT_NE(entry.path().stem().extension(), ".txt") << "a learner's share: " << entry.path();
  }
}

// What cannot be seen for now is not lost: a run that began anew would overwrite it.
TEST_F(RunFolderTest, WhatCannotBeReadIsNotTakenForMissing) {
  const RunFolder run = RunFolder::create(path_, config());
  fs::remove_all(path_ / "checkpoints");
  EXPECT_TRUE(run.checkpoints().empty());
  fs::create_symlink("checkpoints", path_ / "checkpoints");  // round and round
  EXPECT_NE(message_of<scalecom::core::IoError>([&] { run.last_checkpoint(); }).find("checkpoints"),
            std::string::npos);
  EXPECT_TRUE(run.metrics().empty());
  fs::create_symlink("metrics.jsonl", path_ / "metrics.jsonl");
  EXPECT_THROW(run.metrics(), scalecom::core::IoError);
}

TEST_F(RunFolderTest, AResultIsWholeOrDamaged) {
  RunFolder run = RunFolder::create(path_, config());
  for (const char* text : {"", "{}", "[]", "3", R"({"metric": "accuracy", "value": 3})"}) {
    std::ofstream(path_ / "result.json") << text;
    EXPECT_NE(message_of<UsageError>([&] { run.result(); }).find("result.json"), std::string::npos)
        << text;
  }
  const nlohmann::ordered_json whole{{"method", "dense"},
                                     {"metric", "accuracy"},
                                     {"value", 3},
                                     {"steps", 1},
                                     {"seconds", 1},
                                     {"learners", 2},
                                     {"peak_bytes", 1},
                                     {"bytes_per_rank_step", nullptr},
                                     {"effective_rate", nullptr},
                                     {"whole_run_rate", nullptr}};
  run.write_result(whole);
  EXPECT_EQ(run.result(), whole);
  // What is said of groups belongs together; how much is sent inside them may not be known.
  nlohmann::ordered_json grouped = whole;
  grouped["inside_bytes_per_rank_step"] = nullptr;
  run.write_result(grouped);
  EXPECT_THROW(run.result(), UsageError);
  grouped["group"] = 2;
  run.write_result(grouped);
  EXPECT_EQ(run.result(), grouped);
  grouped["group"] = "two";
  run.write_result(grouped);
  EXPECT_THROW(run.result(), UsageError);
}

TEST_F(RunFolderTest, APipeIsNoFileOfARun) {
  const RunFolder run = RunFolder::create(path_, config());
  ASSERT_EQ(::mkfifo((path_ / "result.json").c_str(), 0666), 0);
  EXPECT_NE(message_of<UsageError>([&] { run.result(); }).find("plain file"), std::string::npos);
}

}  // namespace
}  // namespace train::runs
