#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <memory>
#include <nlohmann/json.hpp>

#include "bench/reduce.h"
#include "cli/commands.h"
#include "cli/device_ranks.h"
#include "cli/json_output.h"
#include "cli/meeting.h"
#include "cli/progress.h"
#include "cli/table.h"
#include "comparison/entrants.h"
#include "scalecom/comm/inproc/inproc.h"
#include "scalecom/core/error.h"
#include "scalecom/core/text.h"
#include "scalecom/core/thread_pool.h"

namespace cli {
namespace {

namespace comm = scalecom::comm;
namespace core = scalecom::core;

constexpr const char* kFooter = R"(
Whole reductions over the processes of mpirun or torchrun, or of this one alone, past two that are
not timed; and the same work by each process for itself, all at once. `scalecom plan --kernels FILE`
takes the --json as what compressing costs on this machine: by one rank for itself or, with --ranks,
by so many threads, whose work may grow with their number while nothing crosses a network. On GPUs,
one a process, NCCL lies between the ranks, and times are those of the device's own clock. The
gradient is one of matrices of 1000 x 1000, the first of which travels dense as a model's first layer
does: first=compressed compresses it too.

Example:
  scalecom bench reduce --methods dense,scalecom,topk --elements 25000000 --json kernels.json
  mpirun -n 4 -H host1,host2,host3,host4 scalecom bench reduce --methods dense,scalecom
  scalecom bench reduce --device cuda --methods half,topk,powersgd --json gpu.json)";

struct Options {
  bench::ReducePlan plan;
  std::string methods = "dense,scalecom";
  int ranks = 0;  // as threads of this process; 0: the processes
  std::string device = "cpu";
  double deadline = kDeadlineSeconds;
  JsonOutput json;
};

// What moves no bytes over a network, with the work that grows with the ranks if there were some.
nlohmann::ordered_json to_json(const Options& options, int ranks,
                               const std::vector<bench::ReduceFigures>& rows) {
  const bench::ReducePlan& plan = options.plan;
  const bool threads = options.ranks > 0;
  nlohmann::ordered_json json{{"device", options.device},
                              {"ranks", ranks},
                              {"elements", plan.elements},
                              {"threads", scalecom::core::pool_threads()},
                              {"rows", nlohmann::ordered_json::array()}};
  for (const bench::ReduceFigures& row : rows) {
    json["rows"].push_back({{"method", row.method},
                            {"reduce_ms", row.reduce_ms},
                            {"alone_ms", row.alone_ms},
                            {"kernel_ms", threads ? row.reduce_ms : row.alone_ms},
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

void show(const Options& options, int ranks, const std::vector<bench::ReduceFigures>& rows) {
  options.json.write(to_json(options, ranks, rows));
  if (!options.json.takes_stdout()) fmt::print("{}", to_table(options.plan, ranks, rows));
}

std::vector<bench::ReduceFigures> measure(const bench::ReducePlan& plan, comm::Communicator& world,
                                          const core::Stream& stream = {}) {
  Progress progress;
  auto rows = bench::measure_reduce(plan, world, stream, [&](int done, int all) {
    if (world.rank() != 0) return;
    if (done == 1) progress.start(done, all);
    progress.update(done, "reducing");
  });
  progress.clear();
  return rows;
}

int run_threads(const Options& options) {
  std::vector<bench::ReduceFigures> first;
  comm::inproc::run(options.ranks, [&](comm::Communicator& world) {
    const auto rows = measure(options.plan, world);
    if (world.rank() == 0) first = rows;
  });
  show(options, options.ranks, first);
  return 0;
}

int run_processes(const Options& options) {
  const std::chrono::milliseconds deadline = deadline_of(options.deadline);
  const auto processes = meet("scalecom bench", deadline);
  DeviceRanks world(*processes, options.device, deadline);
  const auto rows = measure(options.plan, world.ranks(), world.stream());
  if (processes->first()) show(options, processes->size(), rows);
  return 0;
}

int run(Options& options) {
  options.json.check();
  options.plan.methods.clear();
  for (const comparison::Entrant& entrant : comparison::parse_methods(options.methods)) {
    options.plan.methods.push_back(entrant.spec);
  }
  constexpr int kMostRanks = 256;
  if (options.ranks < 0 || options.ranks > kMostRanks) {
    throw core::UsageError(
        core::concat("[bench] --ranks ", options.ranks, "; there are 1 to ", kMostRanks));
  }
  if (options.ranks > 0 && options.device != "cpu") {
    throw core::UsageError(core::concat("[bench] --ranks are threads of a CPU, and --device is ",
                                        options.device, "; start a process for each GPU"));
  }
  return options.ranks > 0 ? run_threads(options) : run_processes(options);
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
  command
      ->add_option("--ranks", options->ranks,
                   "Ranks as threads of this process, instead of the processes that there are")
      ->type_name("N");
  command->add_option("--device", options->device, "cpu, cuda for a GPU a process, or cuda:1")
      ->capture_default_str();
  command->add_option("--repeats", options->plan.repeats, "How often each is timed")
      ->capture_default_str();
  command
      ->add_option("--interface", options->plan.interface,
                   "Read also what crosses this network device of the first rank's host")
      ->type_name("DEVICE");
  command
      ->add_option("--deadline", options->deadline,
                   "Seconds to wait for another process before giving up")
      ->type_name("SECONDS")
      ->capture_default_str();
  options->json.add_to(*command);
  command->footer(kFooter);
  return {command, [options] { return run(*options); }};
}

}  // namespace cli
