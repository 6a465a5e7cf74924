#include <fmt/format.h>

#include <algorithm>

#include "comparison/report.h"
#include "scalecom/core/text.h"

namespace comparison {
namespace {

using nlohmann::ordered_json;

std::string number(const ordered_json& value, const char* format) {
  return value.is_number() ? fmt::format(fmt::runtime(format), value.get<double>()) : "-";
}

/// A run's value and its difference to dense: "91.20 (-0.15)".
std::string outcome(const ordered_json& row) {
  if (row.is_null()) return "-";
  if (row.contains("failure")) return "diverged";
  std::string value = number(row["value"], "{:.2f}");
  if (!row["against_dense"].is_number() || row["method"] == "dense") return value;
  return fmt::format("{} ({:+.2f})", value, row["against_dense"].get<double>());
}

/// The method's row of the most learners, at a standard or at a large batch; null where there is
/// none.
ordered_json row_of(const ordered_json& report, const ordered_json& method, bool large) {
  ordered_json found;
  for (const ordered_json& row : report["rows"]) {
    if (row["method"] != method || row["large_batch"] != large) continue;
    if (found.is_null() || row["learners"] > found["learners"]) found = row;
  }
  return found;
}

std::string learners_text(const ordered_json& report, bool large) {
  const ordered_json row = row_of(report, report["rows"][0]["method"], large);
  return row.is_null() ? "" : row["learners"].dump() + " learners";
}

std::string metric_of(const ordered_json& report) {
  for (const ordered_json& row : report["rows"]) {
    if (row["metric"].is_string()) return row["metric"];
  }
  return "value";
}

Table methods_table(const ordered_json& report) {
  const std::string standard = learners_text(report, false);
  const std::string large = learners_text(report, true);
  Table table{fmt::format("Table 1, measured: {}, {}; in brackets the difference to dense",
                          report["task"].get<std::string>(), metric_of(report)),
              {{"method", "traffic in n", "operations/element", "ns/element", "of a copy",
                "bytes/element added", "effective rate", standard}}};
  if (!large.empty()) table.rows[0].push_back(large + ", large batch");
  for (const ordered_json& method : report["methods"]) {
    const ordered_json row = row_of(report, method["method"], false);
    const double ratio =
        method["ns_per_element"].get<double>() / method["copy_ns_per_element"].get<double>();
    table.rows.push_back({method["method"], method["growth"],
                          number(method["ops_per_element"], "{:.1f}"),
                          number(method["ns_per_element"], "{:.2f}"), fmt::format("{:.1f}x", ratio),
                          number(method["method_bytes_per_element"], "{:.1f}"),
                          number(row["effective_rate"], "{:.1f}x"), outcome(row)});
    if (!large.empty()) {
      table.rows.back().push_back(outcome(row_of(report, method["method"], true)));
    }
  }
  return table;
}

Table traffic_table(const ordered_json& report) {
  Table table{"Bytes that the busiest rank of n sends and receives in a step", {{"method"}}};
  for (const ordered_json& world : report["methods"][0]["traffic"]) {
    table.rows[0].push_back("n = " + world["ranks"].dump());
  }
  for (const ordered_json& method : report["methods"]) {
    table.rows.push_back({method["method"]});
    for (const ordered_json& world : method["traffic"]) {
      table.rows.back().push_back(world["max_rank_bytes"].dump());
    }
  }
  return table;
}

Table runs_table(const ordered_json& report) {
  Table table{"Runs",
              {{"method", "learners", "steps", metric_of(report), "bytes a rank and step",
                "effective rate", "peak memory", "seconds"}}};
  for (const ordered_json& row : report["rows"]) {
    const ordered_json megabytes = row["peak_bytes"].is_number()
                                       ? ordered_json(row["peak_bytes"].get<double>() / 1e6)
                                       : nullptr;
    table.rows.push_back({row["spec"], row["learners"].dump(), row["steps"].dump(), outcome(row),
                          number(row["bytes_per_rank_step"], "{:.0f}"),
                          number(row["effective_rate"], "{:.1f}x"), number(megabytes, "{:.0f} MB"),
                          number(row["seconds"], "{:.1f}")});
  }
  return table;
}

std::string markdown_line(const std::vector<std::string>& cells) {
  return "| " + scalecom::core::join(cells, " | ") + " |\n";
}

}  // namespace

std::vector<Table> tables_of(const ordered_json& report) {
  return {methods_table(report), traffic_table(report), runs_table(report)};
}

std::string to_markdown(std::span<const Table> tables) {
  std::string text;
  for (const Table& table : tables) {
    text += (text.empty() ? "" : "\n") + table.title + "\n\n";
    std::vector<std::string> rule(table.rows.front().size(), "---:");
    rule.front() = "---";
    text += markdown_line(table.rows.front()) + markdown_line(rule);
    for (std::size_t i = 1; i < table.rows.size(); ++i) text += markdown_line(table.rows[i]);
  }
  return text;
}

}  // namespace comparison
