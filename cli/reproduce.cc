#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cmath>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>

#include "bench/process_memory.h"
#include "cli/commands.h"
#include "cli/interrupt.h"
#include "cli/json_output.h"
#include "cli/meeting.h"
#include "cli/place.h"
#include "cli/progress.h"
#include "cli/reproduction.h"
#include "cli/scores.h"
#include "cli/table.h"
#include "scalecom/core/error.h"
#include "scalecom/core/text.h"
#include "scalecom/state/text_file.h"
#include "train/loop/trainer.h"
#include "train/recipes/recipe.h"
#include "train/recipes/table.h"
#include "train/runs/json.h"
#include "train/runs/run_folder.h"
#include "train/tasks/tasks.h"

namespace cli {
namespace {

namespace core = scalecom::core;
namespace fs = std::filesystem;
namespace recipes = train::recipes;
using nlohmann::ordered_json;

constexpr const char* kFooter = R"(
A row is the name of a recipe, or a file of that kind. What a row is compared with is run too. Each
run is kept in OUT/ROW/seed-N: complete ones are skipped and others taken up again, so the same
command goes on after Ctrl-C, or under `timeout -s INT 60m`. The same command started several times
shares the runs out: each leaves alone what another is at work on. A run that fails is reported, and
the others go on. Checkpoints of a complete run are removed; its figures stay. The table of all that
is complete is OUT/table.md and OUT/table.json. Translations are scored apart, by sacrebleu: --score
names what does that. It is called with the folder of a run that has made text and, where the
baseline has a complete run of the same seed, with --against and the folder of that one;
scripts/score is such a program.

Example:
  scalecom reproduce --list
  scalecom reproduce cifar10-resnet18-32x cifar10-resnet18-32x-random --data DIR --device cuda \
      --out runs/reproduction
  scalecom reproduce --data DIR --device cuda --score scripts/score --out runs/reproduction)";

constexpr const char* kName = "scalecom reproduce";

// Lost peers are threads of this very process: only a fault of the program's own makes one late.
constexpr std::chrono::minutes kDeadline{30};

struct Options {
  std::vector<std::string> rows;
  fs::path data;
  fs::path out;
  std::optional<int> seeds;
  std::optional<std::int64_t> similarity_every;
  std::string score;
  bool list = false;
  Place place;
  JsonOutput json;
};

/// Shows how far a run is.
class Watcher final : public train::loop::Observer {
 public:
  explicit Watcher(std::string what) : what_(std::move(what)) {}

  void on_start(std::int64_t done, std::int64_t steps) override { progress_.start(done, steps); }
  void on_step(std::int64_t done, double loss) override {
    progress_.update(done, std::isnan(loss) ? what_ : fmt::format("{}, loss {:.3f}", what_, loss));
  }
  void on_metrics(const ordered_json& /*line*/) override {}
  void end() { progress_.clear(); }

 private:
  std::string what_;
  Progress progress_;
};

/// Until it is complete, or interrupted.
void carry_out(const Run& run, const train::runs::RunLock& lock, const Options& options,
               train::loop::Processes& processes, const std::atomic<bool>& stop) {
  train::runs::Request request = run.recipe.request;
  request.seed = run.seed;
  request.similarity_every = options.similarity_every;
  request.data = options.data;
  train::loop::Place place = options.place;
  place.out = run.folder;
  place.lock = &lock;
  place.data = options.data;
  if (run.is_begun()) place.resume = run.folder;
  bench::trim_and_reset_peak();  // a run's peak is not that of the runs before it
  Watcher watcher(fmt::format("{} seed {}", run.recipe.name, run.seed));
  const train::loop::Ending ending = train::loop::train(request, place, processes, stop, watcher);
  watcher.end();
  // Those of 64 learners are gigabytes, and a table has no use for them.
  if (ending.is_complete()) train::runs::RunFolder::open(run.folder).forget_checkpoints();
}

/// What a complete run came to; nothing where its score is missing.
std::optional<recipes::Outcome> outcome(const Run& run, const std::optional<fs::path>& baseline,
                                        std::string& metric) {
  const ordered_json result = train::runs::RunFolder::open(run.folder).result();
  recipes::Outcome outcome;
  outcome.seed = run.seed;
  outcome.value = result.at("value").get<double>();
  outcome.effective_rate = train::runs::number(result, "effective_rate");
  outcome.between_groups = result.contains("group");
  outcome.inside_bytes_per_rank_step = train::runs::number(result, "inside_bytes_per_rank_step");
  metric = result.at("metric").get<std::string>();
  const bool apart = train::tasks::recipe(run.recipe.request.task).scored_apart;
  const std::optional<Score> scored = read_score(run.folder);
  if (!scored) return apart ? std::nullopt : std::optional(outcome);
  if (baseline) outcome.against_baseline = paired_interval(*scored, *baseline);
  if (!apart) return outcome;
  outcome.value = scored->value;
  metric = scored->metric;
  return outcome;
}

void list(const JsonOutput& output) {
  std::vector<recipes::Recipe> all;
  std::size_t width = 0;
  ordered_json json = ordered_json::array();
  for (const std::string& name : recipes::names()) {
    all.push_back(recipes::find(name));
    width = std::max(width, name.size());
    json.push_back({{"name", name}, {"version", all.back().version}, {"about", all.back().about}});
  }
  output.write({{"recipes", json}});
  if (output.takes_stdout()) return;
  for (const auto& recipe : all) fmt::print("{:<{}}  {}\n", recipe.name, width, recipe.about);
}

/// Writes and shows the table of all that is complete.
void report(const Reproduction& reproduction, const Options& options, bool with_hints) {
  std::vector<recipes::Outcomes> outcomes;
  std::vector<std::string> unscored;
  for (const recipes::Recipe& recipe : reproduction.rows()) {
    recipes::Outcomes row{recipe, {}, {}};
    for (const Run& run : reproduction.runs_of(recipe)) {
      if (!run.is_complete()) continue;
      if (const auto one = outcome(run, reproduction.baseline_of(run), row.metric)) {
        row.runs.push_back(*one);
      } else {
        unscored.push_back(run.folder.string());
      }
    }
    outcomes.push_back(std::move(row));
  }
  const ordered_json table = recipes::table_json(outcomes);
  const std::string markdown = recipes::table_markdown(table);
  train::runs::write_json(options.out / "table.json", {{"rows", table}});
  scalecom::state::write_text(options.out / "table.md", markdown);
  options.json.write({{"rows", table}});
  if (!options.json.takes_stdout()) fmt::print("{}", markdown);
  if (with_hints && !unscored.empty()) {
    fmt::print(stderr, "not in the table, as they have no score: run scripts/score {}\n",
               core::join(unscored, " "));
  }
}

void check(Options& options) {
  if (options.out.empty()) {
    throw core::UsageError(
        "[reproduce] --out is missing; give the folder that the runs are kept in");
  }
  if (options.seeds.value_or(1) < 1) {
    throw core::UsageError("[reproduce] --seeds is out of range; give 1 or more");
  }
  options.place.complete("reproduce");
  options.json.check();
}

void make_folder(const fs::path& out) {
  std::error_code unwritable;
  fs::create_directories(out, unwritable);
  if (!unwritable) return;
  throw core::UsageError(core::concat("[reproduce] ", out.string(), " cannot be written: ",
                                      unwritable.message(), "; choose another --out"));
}

struct Tally {
  int elsewhere = 0;               ///< runs that other processes are at work on
  int status = 0;                  ///< by the first failure
  std::set<std::string> reported;  ///< failures, without the run's folder: many may have the same
};

/// Makes a run, unless it is complete or another process does. One that fails is none of the
/// others' business.
void make(const Run& run, const Options& options, train::loop::Processes& processes,
          const std::atomic<bool>& stop, Tally& tally) {
  if (run.is_complete()) return;
  const auto fail = [&](const std::string& message, int status) {
    if (tally.status == 0) tally.status = status;
    std::string what = message;
    const std::string folder = run.folder.string();
    if (const std::size_t at = what.find(folder); at != std::string::npos) {
      what.erase(at, folder.size());
    }
    if (!tally.reported.insert(what).second) return;
    cli::report(kName, fmt::format("{} seed {}: {}", run.recipe.name, run.seed, message), status);
  };
  try {
    const std::optional<train::runs::RunLock> lock = train::runs::RunLock::take(run.folder);
    if (!lock) {
      ++tally.elsewhere;
    } else if (!run.is_complete()) {
      carry_out(run, *lock, options, processes, stop);
    }
  } catch (const core::UsageError& error) {
    fail(error.what(), kUsage);
  } catch (const core::Error& error) {
    fail(error.what(), kFailure);
  }
}

/// Rows come after their baselines, so what there is to compare with has its score.
void score_all(const Reproduction& reproduction, const std::string& program) {
  for (const Run& run : reproduction.runs()) {
    if (!run.is_complete() || !run.has_text()) continue;
    const auto baseline = reproduction.baseline_of(run);
    if (!is_scored(run.folder, baseline)) score(run.folder, baseline, program);
  }
}

int run(Options& options) {
  if (options.list) {
    options.json.check();
    list(options.json);
    return 0;
  }
  check(options);
  const Reproduction reproduction(options.rows, options.out, options.seeds);
  const std::atomic<bool>& stop = catch_interrupts();
  const auto processes = meet(kName, kDeadline);
  if (processes->size() > 1) {
    throw core::UsageError("[reproduce] the runs take one process: leave out mpirun and torchrun");
  }
  reproduction.check_origins();
  make_folder(options.out);
  Tally tally;
  for (const Run& run : reproduction.runs()) {
    if (stop) return kInterrupted;
    make(run, options, *processes, stop, tally);
    if (stop && !run.is_complete()) {
      fmt::print(stderr, "interrupted in {} seed {}; the same command goes on from here\n",
                 run.recipe.name, run.seed);
      return kInterrupted;
    }
  }
  std::exception_ptr unscored;
  try {
    if (!options.score.empty()) score_all(reproduction, options.score);
  } catch (const core::UsageError&) {
    unscored = std::current_exception();
  }
  if (stop) return kInterrupted;
  report(reproduction, options, unscored == nullptr);
  if (tally.elsewhere > 0) {
    fmt::print(stderr, "{} of the runs are being made by other processes\n", tally.elsewhere);
  }
  if (unscored) std::rethrow_exception(unscored);
  return tally.status;
}

void add_options(CLI::App& command, Options& options) {
  command.add_option("ROW", options.rows, "Names of recipes, or files (all)")->type_name("");
  const auto add = [&](const char* name, auto& target, const char* help, const char* type) {
    command.add_option(name, target, help)->type_name(type);
  };
  command.add_flag("--list", options.list, "Show what recipes there are, and nothing else");
  add("--out", options.out, "The folder of the runs and the table", "DIR");
  add("--data", options.data, "The folder of the data", "DIR");
  add("--seeds", options.seeds, "Only so many of each recipe's seeds (all)", "N");
  add("--score", options.score,
      "What scores translations and transcripts: a program that is given a run's folder and, for "
      "what it is compared with, --against and another",
      "PROGRAM");
  add("--similarity-every", options.similarity_every,
      "Steps between measurements of how alike the learners are, in similarity.jsonl (never)",
      "STEPS");
  options.place.add_to(command);
  options.json.add_to(command);
}

}  // namespace

Command add_reproduce(CLI::App& program) {
  CLI::App* const command = program.add_subcommand(
      "reproduce", "Run recipes, and compare each with its baseline over paired seeds");
  const auto options = std::make_shared<Options>();
  add_options(*command, *options);
  command->footer(kFooter);
  return {command, [options] { return run(*options); }};
}

}  // namespace cli
