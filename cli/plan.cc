#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/commands.h"
#include "cli/device_ranks.h"
#include "cli/json_output.h"
#include "cli/meeting.h"
#include "cli/plan_files.h"
#include "cli/plan_report.h"
#include "cli/progress.h"
#include "cli/sweep.h"
#include "cli/table.h"
#include "comparison/entrants.h"
#include "scalecom/core/error.h"
#include "scalecom/core/text.h"
#include "scalecom/plan/calibrate.h"
#include "scalecom/plan/outlook.h"
#include "scalecom/plan/units.h"

namespace cli {
namespace {

namespace core = scalecom::core;
namespace plan = scalecom::plan;

constexpr const char* kFooter = R"(
A step as compute, buckets that become ready during the backward pass, compression, and collectives
that overlap with them. Bytes are those of each method's own formula; what compressing takes was
measured, on the machine that --kernels names. docs/plan.md says what is assumed, and how far plans
were from what was measured.

Example:
  scalecom plan --model resnet50 --workers 128 --tflops 100 --bandwidth 32GB/s --batch 8
  scalecom plan --model gpt2 --workers 64 --groups 8 --tflops 400 --batch 8 --bandwidth 25Gbit/s \
      --latency 20us --inside-bandwidth 450GB/s --sweep workers=8..1024
  mpirun -n 4 -H host1,host2,host3,host4 scalecom plan --measure --json network.json
  scalecom plan --model mine.json --workers 16 --network network.json)";

constexpr const char* kMethods = "dense,half,scalecom,topk,gtopk,dgc,powersgd,sketched_sgd";
constexpr double kTera = 1e12;

struct Options {
  std::string model;
  std::string methods = kMethods;
  int workers = 8;
  int groups = 1;
  std::optional<std::int64_t> batch;
  std::optional<double> tflops;
  std::optional<double> efficiency;
  std::optional<double> step_ms;
  std::string bandwidth;
  std::string latency;
  std::string inside_bandwidth;
  std::string inside_latency;
  std::string network;
  std::string collective = "direct";
  std::string bucket;
  std::string kernels = "h200";
  std::string sweep;
  double deviation = 0;
  bool no_overlap = false;
  bool measure = false;
  std::optional<std::string> device;
  std::optional<double> deadline;
  JsonOutput json;
};

[[noreturn]] void missing(const char* option, const std::string& allowed) {
  throw core::UsageError(core::concat("[plan] ", option, " is missing; give ", allowed));
}

bool sweeps(const Options& options, const char* figure) {
  return options.sweep.starts_with(core::concat(figure, "="));
}

// Options that would go unheard: one that another rules out, or one without that which it is for.
void check_together(const Options& options) {
  const auto needs = [](bool given, const char* option, bool has, const char* needed) {
    if (!given || has) return;
    throw core::UsageError(
        core::concat("[plan] ", option, " says something of ", needed, ", which is not given"));
  };
  if (options.tflops && options.step_ms) {
    throw core::UsageError(
        "[plan] --tflops and --step-ms both say how long computing takes: give one");
  }
  if (options.step_ms && sweeps(options, "batch")) {
    throw core::UsageError(
        "[plan] --step-ms is of one batch, and --sweep is of several: give --tflops instead");
  }
  needs(options.efficiency.has_value(), "--efficiency", options.tflops.has_value(), "--tflops");
  needs(!options.latency.empty(), "--latency",
        !options.bandwidth.empty() || sweeps(options, "bandwidth"), "--bandwidth");
  needs(!options.inside_bandwidth.empty(), "--inside-bandwidth", options.groups != 1, "--groups");
  needs(!options.inside_latency.empty(), "--inside-latency", options.groups != 1, "--groups");
  needs(!options.sweep.empty(), "--sweep", !options.model.empty(), "--model");
  needs(options.device.has_value(), "--device", options.measure, "--measure");
  needs(options.deadline.has_value(), "--deadline", options.measure, "--measure");
}

struct Measured {
  std::vector<plan::HopTime> hops;
  plan::Link link;
};

auto deadline_of(const Options& options) {
  return cli::deadline_of(options.deadline.value_or(kDeadlineSeconds));
}

double latency_of(const std::string& text, const char* option) {
  return text.empty() ? 0 : plan::parse_seconds(text, option);
}

// Over MPI's processes or torchrun's and, on GPUs, over NCCL between them.
Measured measure(const Options& options, train::loop::Processes& processes) {
  DeviceRanks world(processes, options.device.value_or("cpu"), deadline_of(options));
  Progress progress;
  Measured measured;
  measured.hops = plan::measure_hops(world.ranks(), plan::hop_sizes(processes.size()),
                                     world.stream(), [&](int done, int all) {
                                       if (!processes.first()) return;
                                       if (done == 1) progress.start(0, all);
                                       progress.update(done, "measuring the network");
                                     });
  progress.clear();
  measured.link = plan::fit_link(measured.hops);
  return measured;
}

std::string network_text(const Measured& measured, int ranks) {
  std::vector<std::vector<std::string>> rows{{"message", "a hop, ms", "latency and bandwidth"}};
  const plan::Link& link = measured.link;
  for (const plan::HopTime& hop : measured.hops) {
    const double fit = link.latency + hop.sent_bytes / link.bandwidth;
    rows.push_back({bytes_text(hop.sent_bytes / (ranks - 1)),
                    fmt::format("{:.3f}", 1e3 * hop.seconds), fmt::format("{:.3f}", 1e3 * fit)});
  }
  std::string text =
      fmt::format("{} ranks, each sending a message to every other\n{}", ranks, table(rows));
  text += fmt::format("bandwidth {}, latency {:.3g} ms", plan::bandwidth_text(link.bandwidth),
                      1e3 * link.latency);
  return text + "; a plan goes by the hops themselves\n";
}

nlohmann::ordered_json network_json(const Measured& measured, int ranks) {
  nlohmann::ordered_json network = to_json(measured.link);
  network["ranks"] = ranks;
  return network;
}

plan::Link between_of(const Options& options, const std::optional<Measured>& measured) {
  const int sources = (options.bandwidth.empty() ? 0 : 1) + (options.network.empty() ? 0 : 1) +
                      (options.measure ? 1 : 0);
  if (sources > 1) {
    throw core::UsageError(
        "[plan] --bandwidth, --network and --measure all say how fast the network is: give one");
  }
  if (measured) return measured->link;
  if (!options.network.empty()) return plan_link(options.network);
  plan::Link link;
  link.latency = latency_of(options.latency, "--latency");
  if (options.bandwidth.empty() && sweeps(options, "bandwidth")) {
    link.bandwidth = 1;  // until the sweep says what it is
    return link;
  }
  if (options.bandwidth.empty()) {
    missing("--bandwidth", "what a node can send, such as 10Gbit/s, or --network or --measure");
  }
  link.bandwidth = plan::parse_bandwidth(options.bandwidth, "--bandwidth");
  return link;
}

plan::Network network_of(const Options& options, const std::optional<Measured>& measured) {
  plan::Network network;
  network.workers = options.workers;
  network.per_node = options.groups;
  network.algorithm = plan::parse_algorithm(options.collective);
  network.between = between_of(options, measured);
  if (options.groups > 1) {
    if (options.inside_bandwidth.empty()) {
      missing("--inside-bandwidth", "what a worker can send inside its node, such as 300GB/s");
    }
    network.inside.bandwidth =
        plan::parse_bandwidth(options.inside_bandwidth, "--inside-bandwidth");
    network.inside.latency = latency_of(options.inside_latency, "--inside-latency");
  }
  return network;
}

double flops_of(const Options& options) {
  if (!options.tflops) return 0;
  if (!(*options.tflops > 0)) {
    throw core::UsageError(core::concat("[plan] --tflops ", *options.tflops, " is not over 0"));
  }
  const double efficiency = options.efficiency.value_or(1);
  if (!(efficiency > 0) || efficiency > 1) {
    throw core::UsageError(core::concat("[plan] --efficiency ", efficiency,
                                        " is not in (0, 1]: it is the share of --tflops that is "
                                        "reached"));
  }
  return *options.tflops * efficiency * kTera;
}

plan::Setting setting_of(const Options& options, const std::optional<Measured>& measured) {
  constexpr std::int64_t kUsualBatch = 32;
  plan::Setting setting{plan_model(options.model), network_of(options, measured),
                        plan_kernels(options.kernels)};
  const bool known = setting.model.measured();
  if (known && options.tflops) {
    throw core::UsageError(core::concat("[plan] --tflops and the times of ", options.model,
                                        " both say how long computing takes: leave --tflops out"));
  }
  if (!known && !options.tflops && !options.step_ms) {
    missing("--tflops", "what an accelerator reaches, or --step-ms, a worker's measured step");
  }
  setting.flops = flops_of(options);
  if (options.step_ms) {
    if (!(*options.step_ms > 0)) {
      throw core::UsageError(core::concat("[plan] --step-ms ", *options.step_ms, " is not over 0"));
    }
    setting.step_seconds = *options.step_ms / 1e3;
  }
  setting.batch = options.batch.value_or(known ? setting.model.measured_batch : kUsualBatch);
  if (!options.bucket.empty()) setting.bucket_bytes = plan::parse_bytes(options.bucket, "--bucket");
  setting.overlaps = !options.no_overlap;
  setting.deviation = options.deviation;
  return setting;
}

std::vector<PlannedPoint> points_of(const Options& options, const std::optional<Sweep>& sweep,
                                    const std::optional<Measured>& measured) {
  std::vector<std::string> specs;
  for (const comparison::Entrant& entrant : comparison::parse_methods(options.methods)) {
    specs.push_back(entrant.spec);
  }
  const plan::Setting setting = setting_of(options, measured);
  std::vector<PlannedPoint> points;
  const auto add = [&](const plan::Setting& one) {
    points.push_back({one, plan::look_ahead(one, specs)});
  };
  if (!sweep) add(setting);
  if (sweep) {
    for (const double value : sweep->values()) {
      plan::Setting one = setting;
      sweep->apply(value, one);
      add(one);
    }
  }
  return points;
}

// A mistake is told before the network is measured, not after.
void check_before_measuring(const Options& options, const std::optional<Sweep>& sweep) {
  Measured any;
  any.link.bandwidth = 1;
  if (options.model.empty()) {
    between_of(options, any);
  } else {
    points_of(options, sweep, any);
  }
}

int run(Options& options) {
  options.json.check();
  check_together(options);
  if (options.model.empty() && !options.measure) {
    missing("--model", core::concat(core::join(plan::built_in_models()), ", or a .json file"));
  }
  std::optional<Sweep> sweep;
  if (!options.sweep.empty()) sweep.emplace(options.sweep);
  nlohmann::ordered_json json;
  std::string text;
  std::optional<Measured> measured;
  if (options.measure) {
    const auto processes = meet("scalecom plan", deadline_of(options));
    try {
      check_before_measuring(options, sweep);
    } catch (const core::UsageError&) {
      if (!processes->first()) return kUsage;  // the first says why
      throw;
    }
    measured = measure(options, *processes);
    if (!processes->first()) return 0;
    text = network_text(*measured, processes->size());
    json["network"] = network_json(*measured, processes->size());
  }
  if (!options.model.empty()) {
    const std::vector<PlannedPoint> points = points_of(options, sweep, measured);
    text += (text.empty() ? "" : "\n") + to_text(points, sweep);
    json.update(to_json(points, sweep));
  }
  options.json.write(json);
  if (!options.json.takes_stdout()) fmt::print("{}", text);
  return 0;
}

void add_options(CLI::App& command, Options& options) {
  const auto add = [&](const char* name, auto& target, const std::string& help, const char* type) {
    return command.add_option(name, target, help)->type_name(type);
  };
  add("--model", options.model, core::join(plan::built_in_models()) + ", or a .json file", "MODEL");
  add("--workers", options.workers, "Workers in all (8)", "N");
  add("--groups", options.groups,
      "Workers of a node: dense inside nodes, methods that can between them (1)", "G");
  add("--bandwidth", options.bandwidth, "Of a node, each way: 10Gbit/s, 1.25GB/s", "RATE");
  add("--latency", options.latency, "Between two nodes, one way: 80ms, 5us (0)", "TIME");
  add("--inside-bandwidth", options.inside_bandwidth, "Of a worker, inside its node", "RATE");
  add("--inside-latency", options.inside_latency, "Between workers of a node (0)", "TIME");
  add("--network", options.network, "The network as --measure --json wrote it", "FILE");
  add("--collective", options.collective,
      "direct, as over MPI and torchrun, ring or tree, as over NCCL (direct)", "NAME");
  add("--tflops", options.tflops, "TFLOPs a second of a worker", "T");
  add("--efficiency", options.efficiency, "Share of --tflops that is reached (1)", "E");
  add("--step-ms", options.step_ms, "A worker's measured step without communication, instead",
      "MS");
  add("--batch", options.batch, "Samples a worker and step (32, or the measured model's)", "B");
  add("--methods", options.methods, core::concat("A list of methods with options (", kMethods, ")"),
      "LIST");
  add("--kernels", options.kernels,
      core::concat("What compressing takes: ", core::join(plan::stored_kernels(), " or "),
                   ", or files that scalecom bench wrote with --json (h200)"),
      "NAME");
  add("--bucket", options.bucket, "Bytes of a bucket, as DDP cuts them (25MiB)", "BYTES");
  add("--deviation", options.deviation,
      "Stragglers: the standard deviation of a worker's compute, as a share of it (0)", "D");
  command.add_flag("--no-overlap", options.no_overlap,
                   "Communication begins when the backward pass has ended");
  add("--sweep", options.sweep, "workers=8..1024, bandwidth=1Gbit/s..100Gbit/s or batch=8,16,32",
      "FIGURE");
  command.add_flag("--measure", options.measure,
                   "Measure the network between the processes of mpirun or torchrun");
  add("--device", options.device, "With --measure: cpu, or cuda for NCCL, a GPU a process (cpu)",
      "DEVICE");
  add("--deadline", options.deadline,
      "With --measure: seconds to wait for another process before giving up (300)", "SECONDS");
  options.json.add_to(command);
}

}  // namespace

Command add_plan(CLI::App& program) {
  CLI::App* const command = program.add_subcommand(
      "plan", "What each method would do to the step time, before it is run");
  const auto options = std::make_shared<Options>();
  add_options(*command, *options);
  command->footer(kFooter);
  return {command, [options] { return run(*options); }};
}

}  // namespace cli
