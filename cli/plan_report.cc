#include "cli/plan_report.h"

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "cli/plan_files.h"
#include "cli/table.h"
#include "scalecom/plan/units.h"

namespace cli {
namespace {

namespace comm = scalecom::comm;
namespace plan = scalecom::plan;
using nlohmann::ordered_json;

constexpr double kMilli = 1e3;

double share_of(const plan::StepTime& time) {
  return time.exposed / time.step;
}

ordered_json bytes_of(const comm::Counters& counters) {
  ordered_json object = ordered_json::object();
  for (int i = 0; i < comm::kCalls; ++i) {
    const auto call = static_cast<comm::Call>(i);
    if (counters[call].calls == 0) continue;
    object[comm::to_string(call)] = {{"sent", counters[call].sent},
                                     {"received", counters[call].received},
                                     {"calls", counters[call].calls}};
  }
  return object;
}

ordered_json row_of(const plan::Setting& setting, const plan::Outcome& outcome) {
  const plan::StepTime& time = outcome.time;
  ordered_json row{{"method", outcome.method},
                   {"workers", setting.network.workers},
                   {"batch", setting.batch},
                   {"bandwidth", setting.network.between.bandwidth},
                   {"step_ms", kMilli * time.step},
                   {"compute_ms", kMilli * time.compute},
                   {"compress_ms", kMilli * time.compress},
                   {"compress_measured", outcome.measured},
                   {"comm_ms", kMilli * time.comm},
                   {"exposed_comm_ms", kMilli * time.exposed},
                   {"comm_share", share_of(time)},
                   {"speedup", outcome.speedup},
                   {"effective_rate", outcome.effective_rate},
                   {"bytes_between", bytes_of(outcome.moved.between)},
                   {"bytes_inside", bytes_of(outcome.moved.inside)},
                   {"pays_below", nullptr},
                   {"pays_always", !std::isfinite(outcome.pays_below)},
                   {"note", outcome.note},
                   {"hint", outcome.hint}};
  if (outcome.pays_below > 0 && std::isfinite(outcome.pays_below)) {
    row["pays_below"] = outcome.pays_below;
  }
  return row;
}

std::string advice_on(const std::vector<PlannedPoint>& points, const std::optional<Sweep>& sweep) {
  std::string sentence = plan::advise(points.back().outcomes);
  if (!sweep) return sentence;
  return fmt::format("At {} {}: {}", sweep->figure(), sweep->label(sweep->values().back()),
                     sentence);
}

std::string pays_text(double below) {
  if (below <= 0) return "-";
  if (!std::isfinite(below)) return "always";
  return plan::byte_rate_text(below);
}

// What stands in the tables, because it is swept, is not said here.
std::string heading(const plan::Setting& setting, const std::string& swept) {
  const plan::Network& network = setting.network;
  const std::string workers = swept == "workers"     ? "workers"
                              : network.workers == 1 ? "1 worker"
                                                     : fmt::format("{} workers", network.workers);
  const std::string batch = swept == "batch" ? "" : fmt::format(" of {}", setting.batch);
  std::string text = fmt::format(
      "{}: {:.1f}M parameters; {} with batches{} ({} each)\n", setting.model.name,
      static_cast<double>(setting.model.elements()) / 1e6, workers, batch, setting.model.sample);
  text += fmt::format(
      "{}{:.3g} ms between {}, {} collectives{}",
      swept == "bandwidth" ? "" : plan::bandwidth_text(network.between.bandwidth) + " and ",
      kMilli * network.between.latency,
      network.per_node > 1 ? fmt::format("nodes of {}", network.per_node) : std::string("workers"),
      plan::to_string(network.algorithm), setting.overlaps ? "" : ", nothing overlaps");
  if (network.per_node > 1) {
    text += fmt::format("; inside nodes {}", plan::bandwidth_text(network.inside.bandwidth));
  }
  return text + fmt::format("\nkernels as measured on {}\n\n", setting.kernels.device());
}

std::string one_table(const PlannedPoint& point) {
  std::vector<std::vector<std::string>> rows{{"method", "step, ms", "compute", "compress", "comm",
                                              "exposed", "share", "speed-up", "sent",
                                              "pays below"}};
  for (const plan::Outcome& outcome : point.outcomes) {
    const plan::StepTime& time = outcome.time;
    const auto ms = [](double seconds) { return fmt::format("{:.3f}", kMilli * seconds); };
    rows.push_back({outcome.method, ms(time.step), ms(time.compute),
                    outcome.measured ? ms(time.compress) : "?", ms(time.comm), ms(time.exposed),
                    fmt::format("{:.1f} %", 100 * share_of(time)),
                    fmt::format("{:.2f}x", outcome.speedup), bytes_text(outcome.sent_between),
                    pays_text(outcome.pays_below)});
  }
  return fmt::format("{}\n", table(rows));
}

template <typename Cell>
std::string sweep_table(const std::vector<PlannedPoint>& points, const Sweep& sweep,
                        const std::string& title, const Cell& cell) {
  std::vector<std::vector<std::string>> rows{{fmt::format("{}; {}", title, sweep.figure())}};
  for (const double value : sweep.values()) rows.front().push_back(sweep.label(value));
  for (std::size_t i = 0; i < points.front().outcomes.size(); ++i) {
    rows.push_back({points.front().outcomes[i].method});
    for (const PlannedPoint& point : points) rows.back().push_back(cell(point.outcomes[i]));
  }
  return fmt::format("{}\n", table(rows));
}

std::string notes(const PlannedPoint& point) {
  std::string text;
  for (const plan::Outcome& outcome : point.outcomes) {
    for (const std::string& one : {outcome.note, outcome.hint}) {
      if (!one.empty()) text += fmt::format("{}: {}\n", outcome.method, one);
    }
  }
  return text.empty() ? text : fmt::format("{}\n", text);
}

}  // namespace

ordered_json to_json(const std::vector<PlannedPoint>& points, const std::optional<Sweep>& sweep) {
  const plan::Setting& setting = points.front().setting;
  const plan::Network& network = setting.network;
  ordered_json json{
      {"model", setting.model.name},
      {"parameters", setting.model.elements()},
      {"sample", setting.model.sample},
      {"groups", network.per_node},
      {"between", to_json(network.between)},
      {"inside", network.per_node > 1 ? to_json(network.inside) : nullptr},
      {"collective", plan::to_string(network.algorithm)},
      {"overlap", setting.overlaps},
      {"flops", setting.flops},
      {"deviation", setting.deviation},
      {"bucket_bytes", setting.bucket_bytes},
      {"kernels", {{"device", setting.kernels.device()}, {"source", setting.kernels.source()}}},
      {"sweep", sweep ? ordered_json(sweep->figure()) : ordered_json()},
      {"rows", ordered_json::array()},
      {"advice", advice_on(points, sweep)}};
  for (const PlannedPoint& point : points) {
    for (const plan::Outcome& outcome : point.outcomes) {
      json["rows"].push_back(row_of(point.setting, outcome));
    }
  }
  return json;
}

std::string to_text(const std::vector<PlannedPoint>& points, const std::optional<Sweep>& sweep) {
  std::string text = heading(points.front().setting, sweep ? sweep->figure() : "");
  if (!sweep) {
    text += one_table(points.front());
  } else {
    text += sweep_table(points, *sweep, "step, ms", [](const plan::Outcome& outcome) {
      return fmt::format("{:.2f}", kMilli * outcome.time.step);
    });
    text += sweep_table(points, *sweep, "speed-up", [](const plan::Outcome& outcome) {
      return fmt::format("{:.2f}x", outcome.speedup);
    });
    text += sweep_table(points, *sweep, "share of communication", [](const plan::Outcome& outcome) {
      return fmt::format("{:.1f} %", 100 * share_of(outcome.time));
    });
  }
  return fmt::format("{}{}{}\n", text, notes(points.back()), advice_on(points, sweep));
}

}  // namespace cli
