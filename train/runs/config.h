#pragma once

#include <cstdint>
#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "train/optimizers/optimizer.h"
#include "train/tasks/tasks.h"

namespace train::runs {

/// The most that a run may have of each. A learner's mini-batch, of all learners and in all steps,
/// are samples that can be counted.
constexpr int kMostLearners = 1024;
constexpr std::int64_t kLargestBatch = std::int64_t{1} << 20;
constexpr std::int64_t kMostSteps = 1'000'000'000;

/// What is asked for; what is left out, the task's recipe decides.
struct Request {
  std::string task;
  std::string method;
  int learners = 1;
  std::optional<int> groups;  ///< learners of a group, as the method's option groups=
  std::int64_t seed = 1;      ///< 0 or more
  std::filesystem::path data;
  std::optional<double> epochs;
  std::optional<std::int64_t> steps;
  std::optional<std::int64_t> batch;
  std::optional<double> learning_rate;
  std::optional<double> learning_rate_warmup;  ///< share of the steps
  std::optional<double> weight_decay;
  bool masked_momentum = false;  ///< SGD moves only the weights for which something was sent
  std::string recipe;            ///< NAME@VERSION of that which it comes from; may be empty
  std::optional<std::int64_t> similarity_every;  ///< steps; nothing for never

  bool operator==(const Request&) const = default;
};

/// Everything that decides what a run computes.
struct Config {
  std::string task;
  std::string method;  ///< as it was asked for
  std::string spec;    ///< the same with every option
  int learners = 1;
  std::uint64_t seed = 1;
  std::filesystem::path data;  ///< absolute, or empty for the task's own
  std::int64_t steps = 0;
  std::int64_t batch = 1;  ///< a learner's mini-batch
  double learning_rate = 0;
  double learning_rate_warmup = 0;
  optimizers::Optimizer::Kind optimizer = optimizers::Optimizer::Kind::kSgd;
  double momentum = 0;
  bool masked_momentum = false;
  double weight_decay = 0;
  std::string recipe;  ///< where it comes from; decides nothing
  /// Steps between measurements of how alike learners are, which change nothing; 0 for none.
  std::int64_t similarity_every = 0;

  /// But for where the task is run.
  tasks::Options task_options() const { return {data, seed, batch}; }
  /// Without momentum of gradients where the method brings its own.
  optimizers::Optimizer::Options optimizer_options() const;
  optimizers::Schedule schedule() const { return {learning_rate, learning_rate_warmup, steps}; }
};

/// core::UsageError for a path that the files of a run cannot hold.
void check_path(const char* option, const std::filesystem::path& path);

/// A configuration complete but for its steps. core::UsageError for a value that is out of range,
/// an unknown task or a method that cannot be.
Config resolve(const Request& request);

/// Another number of learners, each with the mini-batch it had, and the same learning rate and
/// steps. core::UsageError for a number that is out of range, or that its groups do not divide.
void change_learners(Config& config, int learners);

/// Its steps, which follow from the size of the training set where epochs are asked for.
std::int64_t resolve_steps(const Request& request, const Config& config, std::int64_t samples);

/// The steps that a method sends dense at first, by the option of its complete spec; 0 where it has
/// none.
std::int64_t warmup_of(const std::string& spec);

nlohmann::ordered_json to_json(const Config& config);
/// core::UsageError, saying what is wrong, for an object that to_json() cannot have made.
Config config_from_json(const nlohmann::ordered_json& json);

}  // namespace train::runs
