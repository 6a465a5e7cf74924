#pragma once

#include <atomic>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "comparison/plan.h"
#include "train/loop/processes.h"

namespace comparison {

/// Who watches a comparison. Work is counted in samples.
class Watcher {
 public:
  virtual ~Watcher() = default;
  /// `done` of `all` is over already, from before.
  virtual void on_start(std::int64_t done, std::int64_t all) = 0;
  virtual void on_work(std::int64_t done, const std::string& what) = 0;
  /// A run that is over, now or before; `result` is that of the run, or has a `failure`.
  virtual void on_run(const PlannedRun& run, const nlohmann::ordered_json& result) = 0;
};

/// How far it came: runs, and measurements of methods.
struct Ending {
  std::int64_t parts = 0;
  std::int64_t complete = 0;
  bool is_complete() const { return parts == complete; }
};

/// Trains every run, measures every method, and writes the report. What is complete is taken as it
/// is, what was begun is gone on with. Setting `stop` ends it soon, with a checkpoint. A run that
/// diverges is one of the results; all other failures end the comparison, and it can be gone on
/// with.
Ending carry_out(const Plan& plan, train::loop::Processes& processes, const std::atomic<bool>& stop,
                 Watcher& watcher);

}  // namespace comparison
