#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "cli/sweep.h"
#include "scalecom/plan/outlook.h"

namespace cli {

/// One setting of a plan and what comes of it.
struct PlannedPoint {
  scalecom::plan::Setting setting;
  std::vector<scalecom::plan::Outcome> outcomes;
};

/// For machines: rows of every point and method, and what they were planned with.
nlohmann::ordered_json to_json(const std::vector<PlannedPoint>& points,
                               const std::optional<Sweep>& sweep);
/// For people.
std::string to_text(const std::vector<PlannedPoint>& points, const std::optional<Sweep>& sweep);

}  // namespace cli
