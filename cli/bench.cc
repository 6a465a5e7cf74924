#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>

#include "bench/step.h"
#include "cli/commands.h"
#include "cli/json_output.h"
#include "cli/progress.h"
#include "cli/table.h"

namespace cli {
namespace {

constexpr const char* kStepFooter = R"(
The whole local step is that of methods::Method::reduce(): memory, selection, packing, gathering,
settling, zeroing, scattering. It is verified against the scalar reference before it is timed. Each
repeat times every pass once, and ratios are those of one repeat.

Example:
  scalecom bench step --elements 25600000 --rate 100 --json -)";

struct StepCommand {
  bench::StepPlan plan;
  JsonOutput json;
};

nlohmann::ordered_json to_json(const bench::StepPlan& plan, const bench::StepFigures& figures) {
  return {{"device", "cpu"},
          {"isa", figures.isa},
          {"elements", plan.elements},
          {"rate", plan.rate},
          {"beta", plan.beta},
          {"threads", figures.threads},
          {"verified", figures.verified},
          {"step_ms", figures.leader_ms},
          {"follower_ms", figures.follower_ms},
          {"plain_pass_ms", figures.plain_ms},
          {"copy_ms", figures.copy_ms},
          {"floor_ms", figures.floor_ms},
          {"ratio", figures.leader_ratio},
          {"follower_ratio", figures.follower_ratio},
          {"peak_bytes", figures.peak_bytes}};
}

std::string to_table(const bench::StepPlan& plan, const bench::StepFigures& figures) {
  const auto row = [&](const std::string& what, double ms, double ratio) {
    const double nanoseconds = ms * 1e6 / static_cast<double>(plan.elements);
    return std::vector<std::string>{what, fmt::format("{:.3f}", ms),
                                    fmt::format("{:.3f}", nanoseconds),
                                    fmt::format("{:.2f}", ratio)};
  };
  const double gradient_bytes = 4.0 * static_cast<double>(plan.elements);
  const double extra = static_cast<double>(figures.peak_bytes) / gradient_bytes - 1;
  return fmt::format(
      "{} elements at {}X on {} threads, {}; results equal the scalar reference's\n{}"
      "memory: {} a rank, one fp32 memory and {:.1f}% more\n",
      plan.elements, plan.rate, figures.threads, figures.isa,
      table({{"", "ms", "ns/element", "to plain"},
             row("leader's step", figures.leader_ms, figures.leader_ratio),
             row("follower's step", figures.follower_ms, figures.follower_ratio),
             row("plain pass m += beta*g", figures.plain_ms, 1.0),
             row("copy, 8 bytes/element", figures.copy_ms, figures.copy_ms / figures.plain_ms),
             row("copy, 16 bytes/element", figures.floor_ms, figures.floor_ms / figures.plain_ms)}),
      bytes_text(static_cast<double>(figures.peak_bytes)), 100 * extra);
}

int run_step(const StepCommand& command) {
  command.json.check();
  Progress progress;
  const bench::StepFigures figures = bench::measure_step(command.plan, [&](int done, int all) {
    if (done == 1) progress.start(done, all);
    progress.update(done, "timing");
  });
  progress.clear();
  command.json.write(to_json(command.plan, figures));
  if (!figures.verified) {
    std::fputs("scalecom bench step: the results differ from the scalar reference's\n", stderr);
    return kFailure;
  }
  if (!command.json.takes_stdout()) fmt::print("{}", to_table(command.plan, figures));
  return 0;
}

}  // namespace

Command add_bench(CLI::App& program) {
  CLI::App* group = program.add_subcommand("bench", "Measure this machine");
  group->require_subcommand(1);
  CLI::App* step =
      group->add_subcommand("step", "The local step of one rank, next to what memory allows");
  const auto command = std::make_shared<StepCommand>();
  bench::StepPlan& plan = command->plan;
  step->add_option("--elements", plan.elements, "Elements of the gradient")->capture_default_str();
  step->add_option("--rate", plan.rate, "One value in so many is sent")->capture_default_str();
  step->add_option("--beta", plan.beta, "The memory's filter")->capture_default_str();
  step->add_option("--threads", plan.threads, "Threads; 0 takes one a core")->capture_default_str();
  step->add_option("--repeats", plan.repeats, "How often each pass is timed")
      ->capture_default_str();
  command->json.add_to(*step);
  step->footer(kStepFooter);
  return {group, [command] { return run_step(*command); }};
}

}  // namespace cli
