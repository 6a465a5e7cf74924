#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cctype>
#include <chrono>
#include <cmath>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>

#include "cli/commands.h"
#include "cli/interrupt.h"
#include "cli/json_output.h"
#include "cli/meeting.h"
#include "cli/place.h"
#include "cli/progress.h"
#include "cli/table.h"
#include "scalecom/core/device.h"
#include "scalecom/core/error.h"
#include "scalecom/core/text.h"
#include "scalecom/methods/method.h"
#include "train/loop/trainer.h"
#include "train/recipes/recipe.h"
#include "train/runs/run_folder.h"
#include "train/tasks/tasks.h"

namespace cli {
namespace {

namespace core = scalecom::core;
using nlohmann::ordered_json;

constexpr const char* kName = "scalecom train";

constexpr const char* kFooter = R"(
Under mpirun and torchrun the learners are divided among the processes, with the same result. Ctrl-C
leaves a checkpoint, from which --resume goes on as if nothing had happened.

Example:
  scalecom train --task fashion-mnist --learners 4 --method scalecom,rate=100,beta=0.1 --out runs/a
  mpirun -n 2 scalecom train --task synthetic --learners 4 --method dense --out runs/b
  torchrun --nproc-per-node 2 --no-python scalecom train --task synthetic --method dense --out runs/d
  scalecom train --task cifar10 --data DIR --learners 32 --device cuda \
      --method scalecom,rate=100,beta=0.1 --out runs/c
  scalecom train --recipe cifar10-resnet34-32x --data DIR --device cuda --out runs/e
  scalecom train --resume runs/a)";

struct Options {
  /// As it stands on the command line; what is left out there, a recipe or the defaults decide.
  train::runs::Request request;
  std::optional<int> learners;
  std::optional<std::int64_t> seed;
  std::optional<std::string> momentum;
  std::string recipe;
  Place place;
  std::vector<const CLI::Option*> of_new_runs;  ///< which a run that is resumed has had already
  double deadline = kDeadlineSeconds;
  JsonOutput json;
};

/// What a run prints for people while it goes on.
class Printer final : public train::loop::Observer {
 public:
  explicit Printer(bool prints) : prints_(prints) {}

  void on_start(std::int64_t done, std::int64_t steps) override {
    progress_.start(done, steps);
    if (!prints_) return;
    fmt::print("{:>6}  {:>8}  {:>8}  {:>8}  {:>12}  {:>8}\n", "epoch", "step", "loss", "test",
               "sent a rank", "seconds");
    std::fflush(stdout);
  }

  void on_step(std::int64_t done, double loss) override {
    progress_.update(done, std::isnan(loss) ? "" : fmt::format("loss {:.4f}", loss));
  }

  void on_metrics(const ordered_json& line) override {
    progress_.clear();
    if (!prints_) return;
    fmt::print("{:>6.2f}  {:>8}  {:>8.4f}  {:>8.2f}  {:>12}  {:>8.1f}\n",
               line["epoch"].get<double>(), line["step"].get<std::int64_t>(),
               line["loss"].get<double>(), line["value"].get<double>(),
               bytes_text(line["bytes_per_rank"].get<double>()), line["seconds"].get<double>());
    std::fflush(stdout);
  }

  void end() { progress_.clear(); }

 private:
  bool prints_;
  Progress progress_;
};

std::string number_or_dash(const ordered_json& value, const char* format) {
  return value.is_number() ? fmt::format(fmt::runtime(format), value.get<double>()) : "-";
}

void print_result(const ordered_json& result) {
  std::vector<std::pair<std::string, std::string>> rows{
      {"method", result["method"]},
      {"learners", result["learners"].dump()},
      {result["metric"], number_or_dash(result["value"], "{:.2f}")},
      {"steps", result["steps"].dump()},
      {"seconds", number_or_dash(result["seconds"], "{:.1f}")},
      {"bytes sent a rank and step", number_or_dash(result["bytes_per_rank_step"], "{:.0f}")},
      {"effective rate", number_or_dash(result["effective_rate"], "{:.1f}x")},
      {"the same, warm-up included", number_or_dash(result["whole_run_rate"], "{:.1f}x")},
      {"peak memory", bytes_text(result["peak_bytes"])}};
  if (result.contains("inside_bytes_per_rank_step")) {
    rows.emplace_back(fmt::format("the same inside groups of {}", result["group"].dump()),
                      number_or_dash(result["inside_bytes_per_rank_step"], "{:.0f}"));
  }
  if (result.contains("device_peak_bytes")) {
    rows.emplace_back("peak memory of the GPU", bytes_text(result["device_peak_bytes"]));
  }
  fmt::print("\n{}", facts(rows));
}

/// Puts what the recipe says where the command line says nothing.
void take_recipe(Options& options) {
  constexpr int kLearners = 4;
  train::runs::Request& asked = options.request;
  train::runs::Request base;
  base.learners = kLearners;
  if (!options.recipe.empty()) {
    const train::recipes::Recipe recipe = train::recipes::find(options.recipe);
    base = recipe.request;
    base.seed = recipe.seeds.front();
  }
  const auto fill = [](auto& own, const auto& other) {
    if (!own) own = other;
  };
  if (asked.task.empty()) asked.task = base.task;
  if (asked.method.empty()) asked.method = base.method;
  // Both say how long to train.
  if (!asked.steps) fill(asked.epochs, base.epochs);
  fill(asked.groups, base.groups);
  fill(asked.batch, base.batch);
  fill(asked.learning_rate, base.learning_rate);
  fill(asked.learning_rate_warmup, base.learning_rate_warmup);
  fill(asked.weight_decay, base.weight_decay);
  asked.learners = options.learners.value_or(base.learners);
  asked.seed = options.seed.value_or(base.seed);
  asked.masked_momentum = options.momentum ? *options.momentum == "masked" : base.masked_momentum;
  asked.recipe = base.recipe;
  // What is overruled in what it computes is no run of the recipe.
  train::runs::Request named = base;
  named.seed = asked.seed;
  named.data = asked.data;
  named.similarity_every = asked.similarity_every;
  if (asked != named) asked.recipe.clear();
}

void check(const Options& options) {
  const auto missing = [](const char* option, const std::string& allowed) {
    throw core::UsageError(core::concat("[train] ", option, " is missing; give ", allowed));
  };
  for (const CLI::Option* option : options.of_new_runs) {
    if (!options.place.resume || option->count() == 0) continue;
    throw core::UsageError(core::concat(
        "[train] --resume goes on with the run's own options: leave out ", option->get_name()));
  }
  if (options.request.epochs && options.request.steps) {
    throw core::UsageError("[train] --epochs and --steps both say how long to train: give one");
  }
  if (!options.place.resume) {
    if (options.request.task.empty()) missing("--task", core::join(train::tasks::names(), " or "));
    if (options.request.method.empty()) {
      missing("--method", core::join(scalecom::methods::names(), " or "));
    }
    if (options.place.out.empty()) missing("--out", "the folder that the run is to be written to");
  }
  if (options.momentum.value_or("plain") != "plain" && *options.momentum != "masked") {
    throw core::UsageError(core::concat("[train] --momentum '", *options.momentum,
                                        "' is not known; give plain or masked"));
  }
}

// A path as a shell takes it for one word.
std::string shell_word(const std::string& path) {
  const auto plain = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 ||
           std::string_view("_./-+=:,@%").find(c) != std::string_view::npos;
  };
  if (std::all_of(path.begin(), path.end(), plain)) return path;
  return "'" + core::join(core::split(path, '\''), "'\\''") + "'";
}

int finish(const Options& options, const train::loop::Ending& ending) {
  if (!ending.is_complete()) {
    const core::Device device = options.place.device;
    fmt::print(stderr,
               "interrupted after step {} of {}; go on with: scalecom train --resume {}{}\n",
               ending.done, ending.steps, shell_word(ending.run.string()),
               device.is_cuda() ? " --device " + core::to_string(device) : "");
    return kInterrupted;
  }
  const auto result = train::runs::RunFolder::open(ending.run).result();
  options.json.write(result);
  if (!options.json.takes_stdout()) print_result(result);
  return 0;
}

/// Trains and reports while the other processes are still there: who has left takes the rest along.
int train_together(const Options& options, train::loop::Processes& processes,
                   const std::atomic<bool>& stop) {
  Printer printer(processes.first() && !options.json.takes_stdout());
  // But for a lost peer, failures are the same in all processes: one reports them.
  const auto fail = [&](const char* message, int status) {
    printer.end();
    return processes.first() ? report(kName, message, status) : status;
  };
  try {
    const auto ending =
        train::loop::train(options.request, options.place, processes, stop, printer);
    printer.end();
    if (processes.first()) return finish(options, ending);
    return ending.is_complete() ? 0 : kInterrupted;
  } catch (const core::PeerError& error) {
    printer.end();
    report(kName, error.what(), kFailure);
    processes.end_job(kFailure);
    return kFailure;
  } catch (const core::UsageError& error) {
    return fail(error.what(), kUsage);
  } catch (const std::exception& error) {
    return fail(error.what(), kFailure);
  }
}

int run(Options& options) {
  if (!options.place.resume) take_recipe(options);
  check(options);
  options.place.complete("train");
  const std::chrono::milliseconds deadline = deadline_of(options.deadline);
  options.json.check();
  options.place.learners = options.learners;
  options.place.data = options.request.data;
  const std::atomic<bool>& stop = catch_interrupts();
  const auto processes = meet(kName, deadline);
  return train_together(options, *processes, stop);
}

void add_options(CLI::App& command, Options& options) {
  train::runs::Request& request = options.request;
  Place& place = options.place;
  const auto add = [&](const char* name, auto& target, const std::string& help, const char* type) {
    options.of_new_runs.push_back(command.add_option(name, target, help)->type_name(type));
  };
  add("--task", request.task, core::join(train::tasks::names(), " or "), "TASK");
  add("--recipe", options.recipe,
      "A run that has a name, such as cifar10-resnet18-32x (scalecom reproduce --list), or a file "
      "of "
      "that kind; other options overrule it",
      "NAME");
  add("--method", request.method,
      "How gradients are reduced: " + core::join(scalecom::methods::names(), ", ") +
          ", with options, such as scalecom,rate=100,beta=0.1",
      "SPEC");
  add("--out", place.out, "The folder of the run; new or empty", "DIR");
  command
      .add_option("--learners", options.learners,
                  "How many learners share the work (4); with --resume, as many as before unless "
                  "given")
      ->type_name("N");
  add("--groups", request.groups,
      "Learners of a group: dense inside groups, the method between them (1)", "G");
  add("--epochs", request.epochs, "How often the training set is seen (by the task)", "E");
  add("--steps", request.steps, "How many steps, instead of epochs", "S");
  add("--batch", request.batch, "A learner's mini-batch (by the task)", "B");
  add("--lr", request.learning_rate, "The highest learning rate (by the task, learners and batch)",
      "RATE");
  add("--lr-warmup", request.learning_rate_warmup,
      "The share of the steps in which the learning rate rises (by the task)", "SHARE");
  add("--weight-decay", request.weight_decay,
      "The pull of a weight towards 0, times it and the learning rate (by the task)", "RATE");
  add("--momentum", options.momentum,
      "SGD's: plain, or masked, which moves only the weights for which something was sent (plain)",
      "KIND");
  add("--similarity-every", request.similarity_every,
      "Steps between measurements of how alike the learners are, in similarity.jsonl (never)",
      "STEPS");
  add("--seed", options.seed, "What all that is random comes from (1)", "SEED");
  command
      .add_option("--data", request.data,
                  "The folder of the data (where the task's package puts it); with --resume, where "
                  "it was before unless given")
      ->type_name("DIR");
  command
      .add_option("--resume", place.resume,
                  "Go on with this run, with its own options; give --device again")
      ->type_name("RUN");
  place.add_to(command);
  command
      .add_option("--deadline", options.deadline,
                  "Seconds to wait for another process or learner before giving up (300)")
      ->type_name("SECONDS");
  options.json.add_to(command);
}

}  // namespace

Command add_train(CLI::App& program) {
  CLI::App* const command =
      program.add_subcommand("train", "Train a model with learners that compress their gradients");
  const auto options = std::make_shared<Options>();
  add_options(*command, *options);
  command->footer(kFooter);
  return {command, [options] { return run(*options); }};
}

}  // namespace cli
