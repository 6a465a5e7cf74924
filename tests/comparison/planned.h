#pragma once

#include "comparison/plan.h"
#include "comparison/records.h"
#include "tests/train/folder.h"
#include "train/runs/run_folder.h"

namespace comparison {

/// A plan of two methods and two numbers of learners, kept in the running test's own folder.
inline Plan small_plan(const train::Folder& folder) {
  Plan plan;
  plan.request.task = "synthetic";
  plan.request.steps = 40;
  plan.entrants = parse_methods("dense,scalecom");
  plan.learners = {2, 4};
  plan.large_batch = 3;
  plan.out = folder / "out";
  return plan;
}

/// As if the run had been trained.
inline void pretend(const PlannedRun& run, double value) {
  auto folder = train::runs::RunFolder::create(run.folder, run.config);
  folder.write_result({{"method", run.config.method},
                       {"learners", run.config.learners},
                       {"metric", "test accuracy (%)"},
                       {"value", value},
                       {"steps", run.config.steps},
                       {"seconds", 1.5},
                       {"bytes_per_rank_step", 1000},
                       {"max_rank_bytes", 2000},
                       {"effective_rate", 12.5},
                       {"whole_run_rate", 11.5},
                       {"peak_bytes", 3'000'000}});
}

/// As if the method had been measured.
inline nlohmann::ordered_json figures_of(const Entrant& entrant, const char* growth) {
  return {{"method", entrant.label},
          {"spec", entrant.spec},
          {"growth", growth},
          {"traffic", {{{"ranks", 2}, {"bytes_per_rank_step", 5}, {"max_rank_bytes", 77}}}},
          {"ops_per_element", nullptr},
          {"ns_per_element", 1.5},
          {"copy_ns_per_element", 0.5},
          {"method_bytes_per_element", 4.1},
          {"timed_elements", 1000}};
}

}  // namespace comparison
