#include "train/loop/trainer.h"

#include <algorithm>
#include <atomic>
#include <memory>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "scalecom/comm/inproc/inproc.h"
#include "scalecom/comm/together.h"
#include "scalecom/core/error.h"
#include "scalecom/core/text.h"
#include "scalecom/core/thread_pool.h"
#include "train/machine/memory.h"
#include "train/runs/run_folder.h"

namespace train::loop {
namespace {

namespace comm = scalecom::comm;
namespace core = scalecom::core;

/// Runs the learners of this process, a thread each, until all have ended. Returns the steps that
/// are done, the same for each of them.
std::int64_t run_learners(const Job& job, std::vector<std::unique_ptr<comm::Communicator>> ends) {
  std::atomic<std::int64_t> done = 0;
  comm::inproc::run_ends(std::move(ends), [&](comm::Communicator& world) {
    Learner learner(job, world);
    learner.run();
    done = learner.done();
  });
  return done;
}

void check_division(const runs::Config& config, const Processes& processes) {
  if (config.learners >= processes.size()) return;
  throw core::UsageError(core::concat("[train] ", config.learners,
                                      " learners cannot be divided over ", processes.size(),
                                      " processes; give at least one learner a process"));
}

void check_device(const Place& place, const Processes& processes) {
  if (!place.device.is_cuda() || processes.size() == 1) return;
  throw core::UsageError(core::concat("[train] ", processes.size(), " processes cannot train on ",
                                      core::to_string(place.device),
                                      ": for now one process holds all learners on a GPU; leave "
                                      "out mpirun, or give --device cpu"));
}

/// Learners that compute at once unless told otherwise. The kernels of one mini-batch leave much of
/// a GPU idle.
constexpr int kDeviceSeats = 4;

int seats(const Place& place) {
  return place.threads.value_or(place.device.is_cuda() ? kDeviceSeats : core::pool_threads());
}

std::unique_ptr<tasks::Task> make_task(const runs::Config& config, const Place& place) {
  tasks::Options options = config.task_options();
  options.device = place.device;
  options.at_once = std::min(seats(place), config.learners);
  // Who says how many are computed at once wants them apart.
  options.joined = place.threads ? 1 : config.learners;
  return tasks::make(config.task, options);
}

/// Nothing where the caller has it already, or the process is not the one that writes the run.
std::optional<runs::RunLock> lock_run(const std::filesystem::path& run, const Place& place,
                                      const Processes& processes) {
  if (place.lock != nullptr || !processes.first()) return std::nullopt;
  std::optional<runs::RunLock> lock = runs::RunLock::take(run);
  if (lock) return lock;
  throw core::UsageError(core::concat("[train] another process is at work on ", run.string(),
                                      ", running or stopped: wait for it or end it"));
}

/// What a process has made ready on its own.
struct Prepared {
  std::optional<runs::RunLock> lock;
  runs::Config config;
  std::unique_ptr<tasks::Task> task;
  std::optional<runs::RunFolder> folder;  ///< of a run to go on with
  std::optional<runs::RunFolder::Checkpoint> checkpoint;
};

Prepared prepare(const runs::Request& request, const Place& place, const Processes& processes) {
  Prepared ready;
  check_device(place, processes);
  if (place.resume) {
    ready.folder = runs::RunFolder::open(*place.resume);
    if (!ready.folder->is_complete()) ready.lock = lock_run(*place.resume, place, processes);
    ready.config = ready.folder->config();
    if (!place.data.empty()) ready.config.data = std::filesystem::absolute(place.data);
    runs::check_path("--data", ready.config.data);
    if (place.learners) runs::change_learners(ready.config, *place.learners);
    ready.checkpoint = ready.folder->last_checkpoint();
    check_division(ready.config, processes);
    if (!ready.folder->is_complete()) {
      ready.task = make_task(ready.config, place);
    }
    return ready;
  }
  ready.config = runs::resolve(request);
  check_division(ready.config, processes);
  ready.task = make_task(ready.config, place);
  ready.config.steps = runs::resolve_steps(request, ready.config, ready.task->samples());
  return ready;
}

/// What all processes have to share. Each may have its data elsewhere.
std::string shared_settings(const Prepared& ready, const Place& place) {
  nlohmann::ordered_json settings = to_json(ready.config);
  settings.erase("data");
  const std::filesystem::path out = place.resume.value_or(place.out);
  std::error_code refused;
  const std::filesystem::path canonical = std::filesystem::weakly_canonical(out, refused);
  if (refused) {
    throw core::UsageError(core::concat("[train] ", out.string(), " cannot be looked at: ",
                                        refused.message(), "; choose another --out"));
  }
  runs::check_path(place.resume ? "--resume" : "--out", canonical);
  settings["out"] = canonical.string();
  settings["similarity_every"] = ready.config.similarity_every;
  settings["resume from step"] = ready.checkpoint ? ready.checkpoint->step : 0;
  return settings.dump();
}

/// The run's folder, which the first process makes or tidies and the others open.
runs::RunFolder open_folder(Prepared& ready, const Place& place, Processes& processes) {
  comm::together(processes.between(), [&] {
    if (!processes.first()) return;
    if (!ready.folder) {
      runs::RunFolder::check_free(place.out, ready.config);  // before a lock is put there
      ready.lock = lock_run(place.out, place, processes);
      ready.folder = runs::RunFolder::create(place.out, ready.config);
    }
    ready.folder->change(ready.config);
    ready.folder->forget_lines_after(ready.checkpoint ? ready.checkpoint->step : 0);
  });
  comm::together(processes.between(), [&] {
    if (!ready.folder) ready.folder = runs::RunFolder::open(place.out);
  });
  return *ready.folder;
}

}  // namespace

Ending train(const runs::Request& request, const Place& place, Processes& processes,
             const std::atomic<bool>& stop, Observer& observer) {
  const machine::DeviceMemory device_memory(place.device);
  Prepared ready;
  std::string settings;
  comm::together(processes.between(), [&] {
    ready = prepare(request, place, processes);
    settings = shared_settings(ready, place);
  });
  processes.compare(settings);
  const runs::Config& config = ready.config;
  if (ready.folder && ready.folder->is_complete()) {
    return {*place.resume, config.steps, config.steps};
  }
  runs::RunFolder folder = open_folder(ready, place, processes);
  Replica replica(std::move(ready.task), config, seats(place));
  Job job{config, replica,          folder,        observer,
          stop,   processes.rank(), device_memory, place.checkpoint_every,
          {}};
  if (ready.checkpoint) job.checkpoint = ready.checkpoint->path;

  std::int64_t done = 0;
  auto world = processes.make_world(config.learners);
  comm::together(processes.between(), [&] { done = run_learners(job, std::move(world)); });
  return {folder.path(), done, config.steps};
}

}  // namespace train::loop
