#include "train/runs/config.h"

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "scalecom/core/error.h"
#include "scalecom/core/options.h"
#include "scalecom/core/text.h"
#include "scalecom/core/utf8.h"
#include "scalecom/methods/groups/grouped.h"
#include "scalecom/methods/method.h"
#include "train/runs/json.h"

namespace train::runs {
namespace {

namespace core = scalecom::core;

// The next number is what the command line makes of every larger one: such seeds would be the same.
constexpr std::int64_t kLargestSeed = std::numeric_limits<std::int64_t>::max() - 1;

template <typename T>
void check_range(const char* option, T value, T low, T high) {
  if (value >= low && value <= high) return;
  throw core::UsageError(
      core::concat("[train] ", option, " ", value, " is out of range; give ", low, " to ", high));
}

void check_positive(const char* option, double value) {
  if (value > 0 && std::isfinite(value)) return;
  throw core::UsageError(
      core::concat("[train] ", option, " ", value, " is out of range; give a number over 0"));
}

void check_weight_decay(const char* option, double value) {
  if (value >= 0 && std::isfinite(value)) return;
  throw core::UsageError(
      core::concat("[train] ", option, " ", value, " is out of range; give a number from 0 on"));
}

void check_share(const char* option, double share) {
  if (share >= 0 && share < 1) return;
  throw core::UsageError(core::concat("[train] ", option, " ", share,
                                      " is out of range; give 0 or more, and less than 1"));
}

// Groups of a number of learners take all of them.
void check_groups(const std::string& spec, int learners) {
  const auto groups = scalecom::methods::groups_of(spec);
  if (!groups) return;
  const int size = scalecom::methods::groups::Grouping::parse(*groups).size;
  if (size == 0 || learners % size == 0) return;  // 0: by host
  throw core::UsageError(
      core::concat("[train] ", learners, " learners do not divide into groups of ", size));
}

void check_optimizer(const Config& config) {
  const optimizers::Optimizer::Options options = config.optimizer_options();
  if (options.kind != optimizers::Optimizer::Kind::kAdam) return;
  if (options.gradient_has_momentum) {
    throw core::UsageError(core::concat("[train] the method '", config.method,
                                        "' brings its own momentum, and the task '", config.task,
                                        "' is trained by Adam, which has one: choose another"));
  }
  if (options.masked) {
    throw core::UsageError(core::concat("[train] --momentum masked is SGD's, and the task '",
                                        config.task, "' is trained by Adam: leave it out"));
  }
}

}  // namespace

void check_path(const char* option, const std::filesystem::path& path) {
  if (core::is_utf8(path.string())) return;
  throw core::UsageError(core::concat("[train] ", option, " ", path.string(),
                                      " is not UTF-8, which JSON has to be: rename it"));
}

Config resolve(const Request& request) {
  const tasks::Recipe recipe = tasks::recipe(request.task);
  check_range("--learners", request.learners, 1, kMostLearners);
  Config config;
  config.task = request.task;
  config.method = request.method;
  if (request.groups) {
    check_range("--groups", *request.groups, 1, request.learners);
    config.method += core::concat(",groups=", *request.groups);
  }
  config.spec = scalecom::methods::make(config.method)->spec();
  config.learners = request.learners;
  check_groups(config.spec, config.learners);
  check_range<std::int64_t>("--seed", request.seed, 0, kLargestSeed);
  config.seed = static_cast<std::uint64_t>(request.seed);
  if (!request.data.empty()) config.data = std::filesystem::absolute(request.data);
  check_path("--data", config.data);
  config.batch = request.batch.value_or(recipe.batch);
  check_range<std::int64_t>("--batch", config.batch, 1, kLargestBatch);
  if (request.steps) check_range<std::int64_t>("--steps", *request.steps, 1, kMostSteps);
  if (request.epochs) check_positive("--epochs", *request.epochs);
  const double samples = static_cast<double>(config.batch) * config.learners;
  config.learning_rate = request.learning_rate.value_or(
      recipe.learning_rate * std::sqrt(samples / tasks::Recipe::kReferenceSamples));
  check_positive("--lr", config.learning_rate);
  config.learning_rate_warmup = request.learning_rate_warmup.value_or(recipe.learning_rate_warmup);
  check_share("--lr-warmup", config.learning_rate_warmup);
  config.optimizer = recipe.optimizer;
  config.momentum = recipe.momentum;
  config.masked_momentum = request.masked_momentum;
  config.weight_decay = request.weight_decay.value_or(recipe.weight_decay);
  check_weight_decay("--weight-decay", config.weight_decay);
  check_optimizer(config);
  config.recipe = request.recipe;
  if (request.similarity_every) {
    check_range<std::int64_t>("--similarity-every", *request.similarity_every, 1, kMostSteps);
    config.similarity_every = *request.similarity_every;
  }
  return config;
}

void change_learners(Config& config, int learners) {
  check_range("--learners", learners, 1, kMostLearners);
  check_groups(config.spec, learners);
  config.learners = learners;
}

optimizers::Optimizer::Options Config::optimizer_options() const {
  return {optimizer, momentum, weight_decay, scalecom::methods::make(spec)->brings_momentum(),
          masked_momentum};
}

std::int64_t resolve_steps(const Request& request, const Config& config, std::int64_t samples) {
  if (request.steps) return *request.steps;
  const double epochs = request.epochs.value_or(tasks::recipe(config.task).epochs);
  const double a_step = static_cast<double>(config.batch) * config.learners;
  const double steps = std::ceil(epochs * static_cast<double>(samples) / a_step);
  check_range<double>("--epochs, in steps,", steps, 1, kMostSteps);
  return static_cast<std::int64_t>(steps);
}

std::int64_t warmup_of(const std::string& spec) {
  for (const auto& [key, value] : core::OptionString::parse(spec).settings) {
    if (key == "warmup") return std::stoll(value);
  }
  return 0;
}

nlohmann::ordered_json to_json(const Config& config) {
  nlohmann::ordered_json json{{"task", config.task},
                              {"method", config.method},
                              {"spec", config.spec},
                              {"learners", config.learners},
                              {"seed", config.seed},
                              {"data", config.data.string()},
                              {"steps", config.steps},
                              {"batch", config.batch},
                              {"learning_rate", config.learning_rate},
                              {"learning_rate_warmup", config.learning_rate_warmup},
                              {"optimizer", to_string(config.optimizer)},
                              {"momentum", config.momentum},
                              {"masked_momentum", config.masked_momentum},
                              {"weight_decay", config.weight_decay}};
  if (!config.recipe.empty()) json["recipe"] = config.recipe;
  if (config.similarity_every > 0) json["similarity_every"] = config.similarity_every;
  return json;
}

Config config_from_json(const nlohmann::ordered_json& json) {
  Config config;
  try {
    json.at("task").get_to(config.task);
    json.at("method").get_to(config.method);
    json.at("spec").get_to(config.spec);
    config.learners = static_cast<int>(whole_number(json, "learners", 1, kMostLearners));
    if (!json.at("seed").is_number_unsigned()) throw core::UsageError("[config] 'seed' is no seed");
    json.at("seed").get_to(config.seed);
    config.data = json.at("data").get<std::string>();
    config.steps = whole_number(json, "steps", 1, kMostSteps);
    config.batch = whole_number(json, "batch", 1, kLargestBatch);
    json.at("learning_rate").get_to(config.learning_rate);
    json.at("learning_rate_warmup").get_to(config.learning_rate_warmup);
    // Runs from before there was a choice have neither.
    config.optimizer = optimizers::parse_optimizer(json.value("optimizer", "sgd"));
    json.at("momentum").get_to(config.momentum);
    config.masked_momentum = json.value("masked_momentum", false);
    json.at("weight_decay").get_to(config.weight_decay);
    config.recipe = json.value("recipe", "");
    if (json.contains("similarity_every")) {
      config.similarity_every = whole_number(json, "similarity_every", 0, kMostSteps);
    }
  } catch (const nlohmann::json::exception& error) {
    throw core::UsageError(core::concat("[config] ", error.what()));
  }
  check_positive("learning_rate", config.learning_rate);
  check_share("learning_rate_warmup", config.learning_rate_warmup);
  check_share("momentum", config.momentum);
  check_weight_decay("weight_decay", config.weight_decay);
  return config;
}

}  // namespace train::runs
