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

/// A run of a row.
struct Run {
  const recipes::Recipe& recipe;
  std::int64_t seed;
  fs::path folder;

  bool is_complete() const { return fs::exists(folder / "result.json"); }
  bool is_begun() const { return fs::exists(folder / "config.json"); }
  bool has_text() const { return fs::exists(folder / "hypotheses.txt"); }
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

/// All recipes, in the order of their priority and then of their names.
std::vector<std::string> all_rows() {
  std::vector<std::pair<int, std::string>> ranked;
  for (const std::string& name : recipes::names()) {
    ranked.emplace_back(recipes::find(name).priority, name);
  }
  std::sort(ranked.begin(), ranked.end());
  std::vector<std::string> names;
  for (auto& [priority, name] : ranked) names.push_back(std::move(name));
  return names;
}

/// The rows, each after what it is compared with.
std::vector<recipes::Recipe> wanted_rows(const std::vector<std::string>& names) {
  std::vector<recipes::Recipe> rows;
  const auto add = [&](const recipes::Recipe& recipe) {
    const auto other = std::find_if(rows.begin(), rows.end(), [&](const recipes::Recipe& row) {
      return row.name == recipe.name;
    });
    if (other == rows.end()) {
      rows.push_back(recipe);
    } else if (other->request != recipe.request || other->seeds != recipe.seeds ||
               other->baseline != recipe.baseline) {
      throw core::UsageError(core::concat("[reproduce] two recipes are called '", recipe.name,
                                          "', by which runs are kept: rename one of them"));
    }
  };
  for (const std::string& name : names.empty() ? all_rows() : names) {
    const recipes::Recipe recipe = recipes::find(name);
    if (!recipe.baseline.empty()) {
      // That of a file may be a file beside it.
      const fs::path beside = fs::path(name).parent_path() / (recipe.baseline + ".json");
      const bool is_file = fs::path(name).extension() == ".json" && fs::exists(beside);
      add(recipes::find(is_file ? beside.string() : recipe.baseline));
    }
    add(recipe);
  }
  return rows;
}

std::vector<Run> runs_of(const recipes::Recipe& recipe, const Options& options) {
  std::vector<Run> runs;
  for (const std::int64_t seed : recipe.seeds) {
    if (options.seeds && std::cmp_equal(runs.size(), *options.seeds)) break;
    runs.push_back({recipe, seed, options.out / recipe.name / core::concat("seed-", seed)});
  }
  return runs;
}

/// What decides a run of a recipe, but for how long it is, which follows from the data, and what is
/// each run's own.
ordered_json settings_of(const train::runs::Config& config) {
  ordered_json settings = train::runs::to_json(config);
  for (const char* const key : {"steps", "seed", "data", "recipe", "similarity_every"}) {
    settings.erase(key);
  }
  return settings;
}

/// A run that was made by another version of the recipe, or of a file that was changed since, is no
/// run of this one.
void check_origin(const Run& run) {
  const train::runs::Config made = train::runs::RunFolder::open(run.folder).config();
  const std::string& wanted = run.recipe.request.recipe;
  if (made.recipe != wanted) {
    throw core::UsageError(core::concat("[reproduce] ", run.folder.string(), " was made by '",
                                        made.recipe, "' and not by '", wanted,
                                        "': move it away, or choose another --out"));
  }
  const ordered_json now = settings_of(train::runs::resolve(run.recipe.request));
  const ordered_json then = settings_of(made);
  for (const auto& [key, value] : then.items()) {
    if (now.contains(key) && now.at(key) == value) continue;
    throw core::UsageError(core::concat("[reproduce] ", run.folder.string(), " has ", key, " ",
                                        value.dump(), ", which '", wanted,
                                        "' no longer has: move it away, or choose another --out"));
  }
}

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

/// The folder of the complete run that a run is compared with: its baseline's, of the same seed.
std::optional<fs::path> baseline_of(const Run& run, const std::vector<recipes::Recipe>& rows,
                                    const Options& options) {
  for (const recipes::Recipe& recipe : rows) {
    if (recipe.name != run.recipe.baseline) continue;
    for (const Run& other : runs_of(recipe, options)) {
      if (other.seed == run.seed && other.is_complete()) return other.folder;
    }
  }
  return std::nullopt;
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
void report(const std::vector<recipes::Recipe>& rows, const Options& options, bool with_hints) {
  std::vector<recipes::Outcomes> outcomes;
  std::vector<std::string> unscored;
  for (const recipes::Recipe& recipe : rows) {
    recipes::Outcomes row{recipe, {}, {}};
    for (const Run& run : runs_of(recipe, options)) {
      if (!run.is_complete()) continue;
      if (const auto one = outcome(run, baseline_of(run, rows, options), row.metric)) {
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
void score_all(const std::vector<recipes::Recipe>& rows, const Options& options) {
  for (const recipes::Recipe& recipe : rows) {
    for (const Run& run : runs_of(recipe, options)) {
      if (!run.is_complete() || !run.has_text()) continue;
      const auto baseline = baseline_of(run, rows, options);
      if (!is_scored(run.folder, baseline)) score(run.folder, baseline, options.score);
    }
  }
}

int run(Options& options) {
  if (options.list) {
    options.json.check();
    list(options.json);
    return 0;
  }
  check(options);
  const std::vector<recipes::Recipe> rows = wanted_rows(options.rows);
  const std::atomic<bool>& stop = catch_interrupts();
  const auto processes = meet(kName, kDeadline);
  if (processes->size() > 1) {
    throw core::UsageError("[reproduce] the runs take one process: leave out mpirun and torchrun");
  }
  for (const recipes::Recipe& recipe : rows) {
    for (const Run& run : runs_of(recipe, options)) {
      if (run.is_begun()) check_origin(run);
    }
  }
  make_folder(options.out);
  Tally tally;
  for (const recipes::Recipe& recipe : rows) {
    for (const Run& run : runs_of(recipe, options)) {
      if (stop) return kInterrupted;
      make(run, options, *processes, stop, tally);
      if (stop && !run.is_complete()) {
        fmt::print(stderr, "interrupted in {} seed {}; the same command goes on from here\n",
                   recipe.name, run.seed);
        return kInterrupted;
      }
    }
  }
  std::exception_ptr unscored;
  try {
    if (!options.score.empty()) score_all(rows, options);
  } catch (const core::UsageError&) {
    unscored = std::current_exception();
  }
  if (stop) return kInterrupted;
  report(rows, options, unscored == nullptr);
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
