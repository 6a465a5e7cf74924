#include "comparison/plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <nlohmann/json.hpp>
#include <set>

#include "scalecom/core/error.h"
#include "scalecom/core/hash.h"
#include "scalecom/core/text.h"

namespace comparison {
namespace {

namespace core = scalecom::core;

constexpr double kShareOfEpochs = 0.3;
constexpr std::int64_t kMostTimed = 1'000'000'000;

/// A label as the name of a file.
std::string file_name(const std::string& label) {
  std::string name = label;
  for (char& c : name) {
    const bool plain = std::isalnum(static_cast<unsigned char>(c)) != 0;
    if (!plain && std::string_view(".,=_-").find(c) == std::string_view::npos) c = '_';
  }
  return name == label ? name : fmt::format("{}-{:08x}", name, core::hash(label) >> 32);
}

PlannedRun make_run(const Plan& plan, const Entrant& entrant, int learners, bool large,
                    std::int64_t samples) {
  train::runs::Request request = plan.request;
  request.learners = learners;
  request.method = entrant.spec;
  if (!request.steps && !request.epochs) request.epochs = usual_epochs(request.task);
  const std::int64_t steps = resolve_steps(request, resolve(request), samples);
  request.method = with_warmup(entrant.spec, plan.warmup, steps);
  PlannedRun run{entrant, large, resolve(request), {}};
  run.config.steps = steps;
  run.folder = plan.out / "runs" / fmt::format("{}-{}", file_name(entrant.label), learners);
  return run;
}

}  // namespace

double usual_epochs(const std::string& task) {
  return kShareOfEpochs * train::tasks::recipe(task).epochs;
}

void check(const Plan& plan) {
  if (plan.learners.empty()) {
    throw core::UsageError("[compare] --learners is empty; give numbers such as 2,4,8");
  }
  if (std::set<int>(plan.learners.begin(), plan.learners.end()).size() != plan.learners.size()) {
    throw core::UsageError("[compare] a number stands twice among --learners: give it once");
  }
  if (plan.large_batch < 1 || plan.large_batch > train::runs::kMostLearners) {
    throw core::UsageError(core::concat("[compare] --large-batch ", plan.large_batch,
                                        " is out of range; give 2 to ", train::runs::kMostLearners,
                                        ", or 1 for none"));
  }
  if (!(plan.warmup >= 0 && plan.warmup < 1)) {
    throw core::UsageError(core::concat("[compare] --warmup ", plan.warmup,
                                        " is out of range; give a share in [0, 1)"));
  }
  if (plan.timed_elements < 1 || plan.timed_elements > kMostTimed || plan.timed_repeats < 1) {
    throw core::UsageError(core::concat("[compare] --timed-elements ", plan.timed_elements,
                                        " is out of range; give 1 to ", kMostTimed));
  }
  // The rest is what every run would say: a number of learners, a batch, a task that is not.
  static_cast<void>(runs_of(plan, 1));
}

std::vector<PlannedRun> runs_of(const Plan& plan, std::int64_t samples) {
  std::vector<PlannedRun> runs;
  const auto add = [&](int learners, bool large) {
    for (const Entrant& entrant : plan.entrants) {
      runs.push_back(make_run(plan, entrant, learners, large, samples));
    }
  };
  for (const int learners : plan.learners) add(learners, false);
  if (plan.large_batch > 1) {
    add(plan.large_batch * *std::max_element(plan.learners.begin(), plan.learners.end()), true);
  }
  return runs;
}

std::filesystem::path measured_file(const Plan& plan, const Entrant& entrant) {
  return plan.out / "measured" / (file_name(entrant.label) + ".json");
}

nlohmann::ordered_json settings_of(const Plan& plan) {
  const train::runs::Request& request = plan.request;
  const auto or_null = [](const auto& value) {
    return value ? nlohmann::ordered_json(*value) : nlohmann::ordered_json(nullptr);
  };
  nlohmann::ordered_json settings{
      {"task", request.task},
      {"data", request.data.empty() ? "" : std::filesystem::absolute(request.data).string()},
      {"seed", request.seed},
      {"epochs", or_null(request.epochs)},
      {"steps", or_null(request.steps)},
      {"batch", or_null(request.batch)},
      {"learning_rate", or_null(request.learning_rate)},
      {"warmup", plan.warmup}};
  if (!request.epochs && !request.steps) settings["epochs"] = usual_epochs(request.task);
  return settings;
}

}  // namespace comparison
