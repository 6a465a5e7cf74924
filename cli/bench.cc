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
#include "scalecom/core/error.h"
#include "scalecom/core/text.h"

namespace cli {
namespace {

namespace core = scalecom::core;

constexpr const char* kStepFooter = R"(
The whole local step is that of methods::Method::reduce(): memory, selection, packing, gathering,
settling, zeroing, scattering. It is verified against the scalar reference before it is timed. Each
repeat times every pass once, and ratios are those of one repeat: to a plain pass on the CPU, to a
copy of gradient and memory on a GPU.

Example:
  scalecom bench step --elements 25600000 --rate 100 --json -
  scalecom bench step --device cuda --elements 355000000 --type bf16)";

constexpr const char* kFooter = R"(
Example:
  scalecom bench step --elements 25600000 --rate 100
  mpirun -n 4 -H host1,host2,host3,host4 scalecom bench reduce --methods dense,scalecom)";

struct StepCommand {
  bench::StepPlan plan;
  std::string device = "cpu";
  std::string type = "fp32";
  JsonOutput json;
};

nlohmann::ordered_json to_json(const bench::StepPlan& plan, const bench::StepFigures& figures) {
  return {{"device", core::to_string(plan.device)},
          {"engine", figures.engine},
          {"type", core::to_string(plan.type)},
          {"select", plan.select},
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
  const bool gpu = plan.device.is_cuda();
  const double whole = gpu ? figures.floor_ms : figures.plain_ms;
  const auto bytes = 2 * core::size_of(plan.type);
  const double memory_bytes = 4.0 * static_cast<double>(plan.elements);
  const double extra = static_cast<double>(figures.peak_bytes) / memory_bytes - 1;
  return fmt::format(
      "{} elements ({}) at {}X, select={}, on {}; results equal the scalar reference's\n{}"
      "memory: {} a rank, one fp32 memory and {:.1f}% more\n",
      plan.elements, core::to_string(plan.type), plan.rate, plan.select,
      gpu ? figures.engine : fmt::format("{} threads, {}", figures.threads, figures.engine),
      table({{"", "ms", "ns/element", gpu ? "to floor" : "to plain"},
             row("leader's step", figures.leader_ms, figures.leader_ratio),
             row("follower's step", figures.follower_ms, figures.follower_ratio),
             row("plain pass m += beta*g", figures.plain_ms, figures.plain_ms / whole),
             row(fmt::format("copy, {} bytes/element", bytes), figures.copy_ms,
                 figures.copy_ms / whole),
             row(fmt::format("copy, {} bytes/element", bytes + 8), figures.floor_ms,
                 figures.floor_ms / whole)}),
      bytes_text(static_cast<double>(figures.peak_bytes)), 100 * extra);
}

core::DType parse_type(const std::string& text) {
  for (const core::DType type :
       {core::DType::kFloat32, core::DType::kFloat16, core::DType::kBFloat16}) {
    if (text == core::to_string(type)) return type;
  }
  throw core::UsageError(core::concat("[bench] --type is '", text, "'; give fp32, bf16 or fp16"));
}

int run_step(StepCommand& command) {
  command.json.check();
  command.plan.type = parse_type(command.type);
  command.plan.device = core::parse_device(command.device);
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
  step->add_option("--select", plan.select, "chunk, chunk:C, exact or random")
      ->capture_default_str();
  step->add_option("--type", command->type, "The gradient's type: fp32, bf16 or fp16")
      ->capture_default_str();
  step->add_option("--device", command->device, "cpu, cuda or cuda:1")->capture_default_str();
  step->add_option("--threads", plan.threads, "Threads; 0 takes one a core")->capture_default_str();
  step->add_option("--repeats", plan.repeats, "How often each pass is timed")
      ->capture_default_str();
  command->json.add_to(*step);
  step->footer(kStepFooter);
  group->footer(kFooter);
  const Command reduce = add_bench_reduce(*group);
  return {group,
          [command, reduce] { return reduce.app->parsed() ? reduce.run() : run_step(*command); }};
}

}  // namespace cli
