#pragma once

#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "train/recipes/table.h"

namespace cli {

/// What an outside program makes of the text of a run: score.json in its folder.

/// Has `program` score the text of a run, beside that of its baseline where there is such a run.
/// core::UsageError where it fails.
void score(const std::filesystem::path& run, const std::optional<std::filesystem::path>& baseline,
           const std::string& program);

/// Whether score.json says all that can be said by now.
bool is_scored(const std::filesystem::path& run,
               const std::optional<std::filesystem::path>& baseline);

/// The interval that a run was scored with against that run; nothing where it was scored against
/// another, or none.
std::optional<train::recipes::Interval> paired_interval(const nlohmann::ordered_json& scored,
                                                        const std::filesystem::path& baseline);

}  // namespace cli
