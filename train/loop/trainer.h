#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <optional>

#include "scalecom/core/device.h"
#include "train/loop/learner.h"
#include "train/loop/processes.h"
#include "train/runs/config.h"
#include "train/runs/run_lock.h"

namespace train::loop {

/// Where a run is kept, and how it is run: but for a change of learners, what its result does not
/// depend on.
struct Place {
  std::filesystem::path out;                     ///< of a new run
  std::optional<std::filesystem::path> resume;   ///< a run to go on with, instead
  std::optional<std::int64_t> checkpoint_every;  ///< steps; nothing for each line of metrics
  std::optional<int> threads;                    ///< learners that a process has compute at once
  scalecom::core::Device device = {};            ///< where they do
  std::optional<int> learners = {};     ///< that go on with a run; nothing for as many as it had
  std::filesystem::path data = {};      ///< of a run to go on with, where it lies elsewhere now
  const runs::RunLock* lock = nullptr;  ///< of the run's folder, where the caller has it
};

struct Ending {
  std::filesystem::path run;
  std::int64_t done = 0;
  std::int64_t steps = 0;
  bool is_complete() const { return done == steps; }
};

/// Trains, with the learners divided over the processes, each of which calls it with the same
/// arguments. A run that is complete is left as it is. `request` is not looked at when resuming.
/// core::UsageError where a process that is not among these is at work on the run.
///
/// Where any process fails, all of them throw the same, except for core::PeerError: then processes
/// are lost, and the caller ends the job. Setting `stop` in any process ends the run after the step
/// under way, with a checkpoint.
Ending train(const runs::Request& request, const Place& place, Processes& processes,
             const std::atomic<bool>& stop, Observer& observer);

}  // namespace train::loop
