#pragma once

#include <cstdint>
#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <span>
#include <vector>

#include "train/runs/config.h"

namespace train::runs {

/// A run on the disk:
///     lock             of the process that is at work on it (RunLock)
///     config.json      what decides the run, written first
///     metrics.jsonl    a line for each epoch, or some of them if over 100, and for the last step
///     similarity.jsonl how alike learners were, a line each time it was measured, if ever
///     checkpoints/     step-000000469 and so on, the last two
///     references.txt   of tasks that make text: what the test samples say, a line each, and
///     hypotheses.txt   what the trained model makes of them
///     result.json      when the run is complete
/// Every file but the two of lines appears whole or not at all, and so does a checkpoint's folder.
/// A line is on the disk before the checkpoint of its step is.
class RunFolder {
 public:
  /// core::UsageError where it cannot become this run's: it is there, and not empty.
  static void check_free(const std::filesystem::path& path, const Config& config);
  /// A new run. core::UsageError as check_free(), and where the folder cannot be written.
  static RunFolder create(const std::filesystem::path& path, const Config& config);
  /// One that is there. core::UsageError where it is no run, or its configuration is damaged.
  static RunFolder open(const std::filesystem::path& path);

  const std::filesystem::path& path() const { return path_; }
  const Config& config() const { return config_; }

  /// What goes on with it: another number of learners, or data that lies elsewhere now.
  void change(const Config& config);

  bool is_complete() const;
  /// core::UsageError where it is damaged.
  nlohmann::ordered_json result() const;
  void write_result(const nlohmann::ordered_json& result);

  /// The transcripts of one learner's share of the test samples; then, once all are there, those of
  /// all as the two files.
  void write_transcripts(int learner, std::span<const tasks::Transcript> transcripts);
  void join_transcripts(int learners);

  /// The lines, without one that was cut short.
  std::vector<nlohmann::ordered_json> metrics() const;
  std::vector<nlohmann::ordered_json> similarity() const;
  void append(const nlohmann::ordered_json& line);
  void append_similarity(const nlohmann::ordered_json& line);
  /// Forgets the lines after `step`, which training will write again.
  void forget_lines_after(std::int64_t step);

  struct Checkpoint {
    std::int64_t step = 0;
    std::filesystem::path path;
  };
  /// In the order of steps.
  std::vector<Checkpoint> checkpoints() const;
  std::optional<Checkpoint> last_checkpoint() const;
  /// Where the checkpoint of `step` is written until it is complete; empty, made anew by rank 0.
  std::filesystem::path unfinished_checkpoint() const;
  void clear_unfinished_checkpoint();
  /// Gives the checkpoint its name, and removes all but the last two.
  void finish_checkpoint(std::int64_t step);
  /// Removes them all: of a run that is complete, and has no use for them.
  void forget_checkpoints();

 private:
  RunFolder(std::filesystem::path path, Config config);

  std::filesystem::path path_;
  Config config_;
};

}  // namespace train::runs
