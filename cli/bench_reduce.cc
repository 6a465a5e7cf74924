#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <memory>
#include <nlohmann/json.hpp>

#include "bench/reduce.h"
#include "cli/commands.h"
#include "cli/json_output.h"
#include "cli/progress.h"
#include "cli/table.h"
#include "comparison/entrants.h"
#include "scalecom/core/thread_pool.h"
#include "train/processes.h"

namespace cli {
namespace {

constexpr const char* kFooter = R"(
Whole reductions over the processes of mpirun or torchrun, or of this one alone, past two that are
not timed; and the same work by each process for itself, all at once. `scalecom plan --kernels FILE`
takes the --json as what compressing costs on this machine.

Example:
  scalecom bench reduce --methods dense,scalecom,topk --elements 25000000 --json kernels.json
  mpirun -n 4 -H host1,host2,host3,host4 scalecom bench reduce --methods dense,scalecom)";

constexpr std::chrono::minutes kDeadline{5};

struct Options {
  bench::ReducePlan plan;
  std::string methods = "dense,scalecom";
  JsonOutput json;
};

nlohmann::ordered_json to_json(const bench::ReducePlan& plan, int ranks,
                               const std::vector<bench::ReduceFigures>& rows) {
  nlohmann::ordered_json json{{"device", "cpu"},
                              {"ranks", ranks},
                              {"elements", plan.elements},
                              {"threads", scalecom::core::pool_threads()},
                              {"rows", nlohmann::ordered_json::array()}};
  for (const bench::ReduceFigures& row : rows) {
    json["rows"].push_back({{"method", row.method},
                            {"reduce_ms", row.reduce_ms},
                            {"alone_ms", row.alone_ms},
                            {"steps", plan.repeats},
                            {"bytes_sent", row.moved.sent},
                            {"bytes_received", row.moved.received},
                            {"formula_sent", row.formula.sent},
                            {"formula_received", row.formula.received}});
    if (plan.interface.empty()) continue;
    json["rows"].back()["interface"] = {{"bytes_sent", row.wire.bytes_sent},
                                        {"packets_sent", row.wire.packets_sent},
                                        {"bytes_received", row.wire.bytes_received},
                                        {"packets_received", row.wire.packets_received}};
  }
  return json;
}

std::string to_table(const bench::ReducePlan& plan, int ranks,
                     const std::vector<bench::ReduceFigures>& rows) {
  std::vector<std::vector<std::string>> lines{
      {"method", "reduction, ms", "alone, ms", "sent a step"}};
  for (const bench::ReduceFigures& row : rows) {
    lines.push_back({row.method, fmt::format("{:.3f}", row.reduce_ms),
                     fmt::format("{:.3f}", row.alone_ms),
                     bytes_text(static_cast<double>(row.moved.sent) / plan.repeats)});
  }
  return fmt::format("{} elements, {} ranks\n{}", plan.elements, ranks, table(lines));
}

int run(Options& options) {
  options.json.check();
  options.plan.methods.clear();
  for (const comparison::Entrant& entrant : comparison::parse_methods(options.methods)) {
    options.plan.methods.push_back(entrant.spec);
  }
  train::Processes processes(kDeadline);
  Progress progress;
  const bool first = processes.first();
  const auto rows =
      bench::measure_reduce(options.plan, processes.between(), [&](int done, int all) {
        if (!first) return;
        if (done == 1) progress.start(done, all);
        progress.update(done, "reducing");
      });
  progress.clear();
  if (!first) return 0;
  options.json.write(to_json(options.plan, processes.size(), rows));
  if (!options.json.takes_stdout()) {
    fmt::print("{}", to_table(options.plan, processes.size(), rows));
  }
  return 0;
}

}  // namespace

Command add_bench_reduce(CLI::App& bench) {
  CLI::App* const command =
      bench.add_subcommand("reduce", "Whole reductions, over the processes that there are");
  const auto options = std::make_shared<Options>();
  command->add_option("--elements", options->plan.elements, "Elements of the gradient")
      ->capture_default_str();
  command->add_option("--methods", options->methods, "A list of methods with their options")
      ->type_name("LIST")
      ->capture_default_str();
  command->add_option("--repeats", options->plan.repeats, "How often each is timed")
      ->capture_default_str();
  command
      ->add_option("--interface", options->plan.interface,
                   "Read also what crosses this network device of the first rank's host")
      ->type_name("DEVICE");
  options->json.add_to(*command);
  command->footer(kFooter);
  return {command, [options] { return run(*options); }};
}

}  // namespace cli
