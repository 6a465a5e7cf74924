#pragma once

#include <cstdint>
#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "comparison/entrants.h"
#include "train/runs/config.h"

namespace comparison {

/// What is compared, and where it is kept.
struct Plan {
  /// The task, the seed and how long: for every run. Its method and learners are not looked at.
  train::runs::Request request;
  std::vector<Entrant> entrants;
  std::vector<int> learners;
  /// A large batch is one of this many times as many learners as the most above, as in the paper;
  /// 1 for none.
  int large_batch = 4;
  double warmup = 0.1;  ///< share of the steps, for methods that can send their first ones dense
  std::filesystem::path out;
  std::int64_t timed_elements = 4'000'000;  ///< at least, of the gradient that steps are timed with
  int timed_repeats = 9;
};

/// How long a comparison trains unless told: three tenths of what `scalecom train` does, as there
/// are many runs.
double usual_epochs(const std::string& task);

/// core::UsageError, saying what would be right, for a plan that cannot be.
void check(const Plan& plan);

/// One training run of a plan.
struct PlannedRun {
  Entrant entrant;
  bool large_batch = false;
  train::runs::Config config;
  std::filesystem::path folder;

  /// Samples that it sees: what its time is nearly proportional to.
  std::int64_t work() const { return config.steps * config.learners * config.batch; }
};

/// Every number of learners with every method, the large batch last. `samples` is the size of the
/// training set.
std::vector<PlannedRun> runs_of(const Plan& plan, std::int64_t samples);

/// What is measured of a method besides training is kept in this file.
std::filesystem::path measured_file(const Plan& plan, const Entrant& entrant);

/// All that a run's result depends on, but for its method and learners.
nlohmann::ordered_json settings_of(const Plan& plan);

}  // namespace comparison
