#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "comparison/plan.h"

namespace comparison {

/// What a comparison has on the disk:
///     settings.json    what all its runs have in common, written first
///     measured/        a file a method: traffic, time, memory, operations
///     runs/            a folder a run, as `scalecom train` writes it; NAME.failed.json beside one
///                      that ended in a failure of its own
///     compare.json     the result, and table.md, the same for people
/// Every file appears whole or not at all. Other methods and learners may join later.
class Records {
 public:
  /// Makes the folder, or takes up one with the same settings. core::UsageError where it cannot be
  /// written, or holds something else.
  explicit Records(const Plan& plan);

  /// Of a method; nothing where it is to be measured. core::UsageError where it is of other
  /// options.
  std::optional<nlohmann::ordered_json> measured(const Entrant& entrant) const;
  void write_measured(const Entrant& entrant, const nlohmann::ordered_json& figures);

  /// The result of a run, or {"failure": why}; nothing where it is not over. core::UsageError where
  /// its folder holds another run.
  std::optional<nlohmann::ordered_json> result(const PlannedRun& run) const;
  void write_failure(const PlannedRun& run, const std::string& why);
  /// Whether it was begun and can be gone on with, and the steps of its last checkpoint.
  bool is_begun(const PlannedRun& run) const;
  std::int64_t steps_done(const PlannedRun& run) const;

  void write_report(const nlohmann::ordered_json& report, const std::string& table);

 private:
  Plan plan_;
};

}  // namespace comparison
