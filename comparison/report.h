#pragma once

#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <vector>

#include "comparison/plan.h"
#include "comparison/records.h"

namespace comparison {

/// All figures of a comparison that is complete: its settings, `rows`, one a run, `growth` by
/// method, and `traffic`, one a method and number of ranks.
nlohmann::ordered_json report_of(const Plan& plan, const Records& records,
                                 std::span<const PlannedRun> runs);

/// Cells for people, the first line being the head.
struct Table {
  std::string title;
  std::vector<std::vector<std::string>> rows;
};

/// The paper's Table 1 as measured, what the busiest rank moves, and every run.
std::vector<Table> tables_of(const nlohmann::ordered_json& report);

std::string to_markdown(std::span<const Table> tables);

}  // namespace comparison
