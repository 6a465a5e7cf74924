#include "comparison/report.h"

#include <optional>

namespace comparison {
namespace {

using nlohmann::ordered_json;

ordered_json row_of(const PlannedRun& run, const ordered_json& result,
                    const ordered_json& measured) {
  const auto of_result = [&](const char* key) { return result.value(key, ordered_json()); };
  ordered_json row{{"method", run.entrant.label},
                   {"learners", run.config.learners},
                   {"seed", run.config.seed},
                   {"metric", of_result("metric")},
                   {"value", of_result("value")},
                   {"bytes_per_rank_step", of_result("bytes_per_rank_step")},
                   {"max_rank_bytes", of_result("max_rank_bytes")},
                   {"effective_rate", of_result("effective_rate")},
                   {"ops_per_element", measured.at("ops_per_element")},
                   {"ns_per_element", measured.at("ns_per_element")},
                   {"copy_ns_per_element", measured.at("copy_ns_per_element")},
                   {"peak_bytes", of_result("peak_bytes")},
                   {"spec", run.config.method},
                   {"large_batch", run.large_batch},
                   {"batch", run.config.batch},
                   {"steps", run.config.steps},
                   {"seconds", of_result("seconds")},
                   {"against_dense", nullptr}};
  if (result.contains("failure")) row["failure"] = result["failure"];
  return row;
}

/// The value of dense with as many learners; nothing where it is not compared, or has none.
std::optional<double> dense_value(const ordered_json& rows, const ordered_json& row) {
  for (const ordered_json& other : rows) {
    if (other["method"] != "dense" || other["learners"] != row["learners"]) continue;
    if (other["value"].is_number()) return other["value"].get<double>();
  }
  return std::nullopt;
}

}  // namespace

ordered_json report_of(const Plan& plan, const Records& records, std::span<const PlannedRun> runs) {
  ordered_json report = settings_of(plan);
  ordered_json rows = ordered_json::array();
  for (const PlannedRun& run : runs) {
    rows.push_back(row_of(run, records.result(run).value(), records.measured(run.entrant).value()));
  }
  for (ordered_json& row : rows) {
    const auto dense = dense_value(rows, row);
    if (dense && row["value"].is_number()) {
      row["against_dense"] = row["value"].get<double>() - *dense;
    }
  }
  ordered_json growth = ordered_json::object();
  ordered_json methods = ordered_json::array();
  for (const Entrant& entrant : plan.entrants) {
    methods.push_back(records.measured(entrant).value());
    growth[entrant.label] = methods.back()["growth"];
  }
  report["rows"] = rows;
  report["growth"] = growth;
  report["methods"] = methods;
  return report;
}

}  // namespace comparison
