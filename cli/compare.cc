#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <charconv>
#include <chrono>
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/commands.h"
#include "cli/interrupt.h"
#include "cli/json_output.h"
#include "cli/meeting.h"
#include "cli/progress.h"
#include "cli/table.h"
#include "comparison/carry_out.h"
#include "comparison/report.h"
#include "scalecom/core/error.h"
#include "scalecom/core/text.h"
#include "scalecom/methods/method.h"
#include "train/runs/json.h"
#include "train/runs/run_folder.h"
#include "train/tasks/tasks.h"

namespace cli {
namespace {

namespace core = scalecom::core;
using nlohmann::ordered_json;

constexpr const char* kFooter = R"(
Measures the paper's Table 1: what each method moves among 2 to 64 ranks, what it costs, and what
becomes of the task. A name alone is a method's usual setting; options follow their method. Ctrl-C
leaves all that is done, and the same command goes on from there; other methods and learners may
join the same --out. docs/methods.md says how each figure is measured.

Example:
  scalecom compare --task fashion-mnist --learners 2,4,8 --methods all --out runs/table1
  scalecom compare --task synthetic --learners 4 --methods dense,scalecom,rate=50,beta=1 --out runs/b)";

// Lost peers are threads of this very process: only a fault of the program's own makes one late.
constexpr std::chrono::minutes kDeadline{5};

struct Options {
  comparison::Plan plan;
  std::string learners = "2,4,8";
  std::string methods;
  JsonOutput json;
};

/// What a comparison prints for people while it goes on.
class Printer final : public comparison::Watcher {
 public:
  explicit Printer(bool prints) : prints_(prints) {}

  void on_start(std::int64_t done, std::int64_t all) override {
    all_ = all;
    progress_.start(share(done), kParts);
  }
  void on_work(std::int64_t done, const std::string& what) override {
    progress_.update(share(done), what);
  }
  void on_run(const comparison::PlannedRun& run, const ordered_json& result) override {
    progress_.clear();
    if (!prints_) return;
    const bool failed = result.contains("failure");
    fmt::print("{:<40}  {:>3} learners  {}\n", run.entrant.label, run.config.learners,
               failed ? result["failure"].get<std::string>()
                      : fmt::format("{:.2f}", result["value"].get<double>()));
    std::fflush(stdout);
  }
  void end() { progress_.clear(); }

 private:
  /// The bar counts thousandths: samples mean nothing to who waits.
  static constexpr std::int64_t kParts = 1000;
  std::int64_t share(std::int64_t done) const { return kParts * done / all_; }

  bool prints_;
  std::int64_t all_ = 1;
  Progress progress_;
};

std::vector<int> parse_learners(const std::string& list) {
  std::vector<int> all;
  for (const std::string& piece : core::split(list, ',')) {
    int learners = 0;
    const char* const end = piece.data() + piece.size();
    const auto [rest, error] = std::from_chars(piece.data(), end, learners);
    if (error != std::errc() || rest != end) {
      throw core::UsageError(core::concat("[compare] '", piece,
                                          "' among --learners is no number; give a list such as "
                                          "2,4,8"));
    }
    all.push_back(learners);
  }
  return all;
}

void complete(Options& options) {
  const train::runs::Request& request = options.plan.request;
  const auto missing = [](const char* option, const std::string& allowed) {
    throw core::UsageError(core::concat("[compare] ", option, " is missing; give ", allowed));
  };
  if (request.task.empty()) missing("--task", core::join(train::tasks::names(), " or "));
  if (options.methods.empty()) {
    missing("--methods", "all, or some of " + core::join(scalecom::methods::names()));
  }
  if (options.plan.out.empty()) missing("--out", "the folder that the comparison is kept in");
  if (request.epochs && request.steps) {
    throw core::UsageError("[compare] --epochs and --steps both say how long to train: give one");
  }
  options.plan.entrants = comparison::parse_methods(options.methods);
  options.plan.learners = parse_learners(options.learners);
}

void print_tables(const ordered_json& report) {
  for (const comparison::Table& shown : comparison::tables_of(report)) {
    fmt::print("\n{}\n{}", shown.title, table(shown.rows));
  }
}

int run(Options& options) {
  complete(options);
  comparison::check(options.plan);
  options.json.check();
  const std::atomic<bool>& stop = catch_interrupts();
  const auto processes = meet("scalecom compare", kDeadline);
  if (!processes->first()) return kUsage;  // the first says why
  Printer printer(!options.json.takes_stdout());
  const comparison::Ending ending = comparison::carry_out(options.plan, *processes, stop, printer);
  printer.end();
  if (!ending.is_complete()) {
    fmt::print(stderr,
               "interrupted with {} of {} runs and measurements complete in {}; the same command "
               "goes on from here\n",
               ending.complete, ending.parts, options.plan.out.string());
    return kInterrupted;
  }
  const ordered_json report = train::runs::read_json(options.plan.out / "compare.json");
  options.json.write(report);
  if (!options.json.takes_stdout()) print_tables(report);
  return 0;
}

void add_options(CLI::App& command, Options& options) {
  comparison::Plan& plan = options.plan;
  train::runs::Request& request = plan.request;
  const auto add = [&](const char* name, auto& target, const std::string& help, const char* type) {
    command.add_option(name, target, help)->type_name(type);
  };
  add("--task", request.task, core::join(train::tasks::names(), " or "), "TASK");
  add("--methods", options.methods,
      "all, or a list of methods with their options: " +
          core::join(scalecom::methods::names(), ", "),
      "LIST");
  add("--learners", options.learners, "Numbers of learners to train with (2,4,8)", "LIST");
  add("--large-batch", plan.large_batch,
      "Train also with this many times as many learners as the most; 1 for not (4)", "FACTOR");
  add("--out", plan.out, "The folder of the comparison; new, or one to go on with", "DIR");
  add("--epochs", request.epochs, "How often each run sees the training set (0.3 of train's)", "E");
  add("--steps", request.steps, "How many steps, instead of epochs", "S");
  add("--warmup", plan.warmup,
      "Share of the steps that methods with a warm-up send dense, unless they say (0.1)", "SHARE");
  add("--batch", request.batch, "A learner's mini-batch (by the task)", "B");
  add("--lr", request.learning_rate, "The highest learning rate (by the task, learners and batch)",
      "RATE");
  add("--seed", request.seed, "What all that is random comes from (1)", "SEED");
  add("--data", request.data, "The folder of the data (where the task's package puts it)", "DIR");
  add("--timed-elements", plan.timed_elements,
      "Least elements of the gradient that steps are timed with (4000000)", "N");
  options.json.add_to(command);
}

}  // namespace

Command add_compare(CLI::App& program) {
  CLI::App* const command = program.add_subcommand(
      "compare", "Train with several methods and numbers of learners, and measure each method");
  const auto options = std::make_shared<Options>();
  add_options(*command, *options);
  command->footer(kFooter);
  return {command, [options] { return run(*options); }};
}

}  // namespace cli
