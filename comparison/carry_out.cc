#include "comparison/carry_out.h"

#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>

#include "bench/process_memory.h"
#include "comparison/measurement.h"
#include "comparison/records.h"
#include "comparison/report.h"
#include "scalecom/core/error.h"
#include "train/loop/trainer.h"
#include "train/runs/run_folder.h"

namespace comparison {
namespace {

namespace core = scalecom::core;
using nlohmann::ordered_json;

/// One run's steps as work of the whole comparison.
class RunObserver final : public train::loop::Observer {
 public:
  RunObserver(const PlannedRun& run, std::int64_t before, std::string what, Watcher& watcher)
      : run_(run), before_(before), what_(std::move(what)), watcher_(watcher) {}

  void on_start(std::int64_t /*done*/, std::int64_t /*steps*/) override {}
  void on_step(std::int64_t done, double /*loss*/) override {
    watcher_.on_work(before_ + done * (run_.work() / run_.config.steps), what_);
  }
  void on_metrics(const ordered_json& /*line*/) override {}

 private:
  const PlannedRun& run_;
  std::int64_t before_;
  std::string what_;
  Watcher& watcher_;
};

class Comparison {
 public:
  Comparison(const Plan& plan, train::loop::Processes& processes, const std::atomic<bool>& stop,
             Watcher& watcher)
      : plan_(plan), processes_(processes), stop_(stop), watcher_(watcher), records_(plan) {
    const auto probe = make_probe();
    batch_ = probe->batch();
    runs_ = runs_of(plan, probe->training_samples());
  }

  Ending carry_out() {
    start();
    // In this order: what many ranks leave behind in the heap is not to count as a run's memory.
    train_all();
    if (!stop_) measure_all();
    Ending ending{static_cast<std::int64_t>(runs_.size() + plan_.entrants.size()), 0};
    for (const PlannedRun& run : runs_) ending.complete += records_.result(run) ? 1 : 0;
    for (const Entrant& one : plan_.entrants) ending.complete += records_.measured(one) ? 1 : 0;
    if (ending.is_complete()) {
      const ordered_json report = report_of(plan_, records_, runs_);
      records_.write_report(report, to_markdown(tables_of(report)));
    }
    return ending;
  }

 private:
  std::unique_ptr<Probe> make_probe() const {
    train::runs::Request request = plan_.request;
    request.method = plan_.entrants.front().spec;
    request.learners = plan_.learners.front();
    return std::make_unique<Probe>(resolve(request));
  }

  /// What is there is looked at before anything is done, so that a mistake is told at once.
  void start() {
    std::int64_t over = 0;
    std::int64_t all = 0;
    for (const Entrant& entrant : plan_.entrants) {
      if (records_.measured(entrant)) over += measurement_work(batch_);
      all += measurement_work(batch_);
    }
    for (const PlannedRun& run : runs_) {
      over += records_.steps_done(run) * (run.work() / run.config.steps);
      all += run.work();
    }
    watcher_.on_start(over, all);
  }

  void measure_all() {
    std::unique_ptr<Probe> probe;
    for (const Entrant& entrant : plan_.entrants) {
      if (!records_.measured(entrant)) {
        if (!probe) probe = make_probe();
        const auto figures = measure(
            plan_, *probe, entrant, [this] { return stop_.load(); },
            [&](std::int64_t done) {
              watcher_.on_work(done_ + done, "measuring " + entrant.label);
            });
        if (!figures) return;
        records_.write_measured(entrant, *figures);
      }
      done_ += measurement_work(batch_);
    }
  }

  void train_all() {
    for (std::size_t i = 0; i < runs_.size(); ++i) {
      const PlannedRun& run = runs_[i];
      auto result = records_.result(run);
      if (!result) {
        if (stop_) return;
        train_one(run, fmt::format("run {} of {}: {}, {} learners", i + 1, runs_.size(),
                                   run.entrant.label, run.config.learners));
        result = records_.result(run);
        if (!result) return;
      }
      done_ += run.work();
      watcher_.on_run(run, *result);
    }
  }

  void train_one(const PlannedRun& run, const std::string& what) {
    train::runs::Request request = plan_.request;
    request.method = run.config.method;
    request.learners = run.config.learners;
    request.epochs.reset();
    request.steps = run.config.steps;
    train::loop::Place place;
    if (records_.is_begun(run)) {
      place.resume = run.folder;
    } else {
      place.out = run.folder;
    }
    bench::trim_and_reset_peak();  // a run's peak is not that of the runs before it
    RunObserver observer(run, done_, what, watcher_);
    try {
      train::loop::train(request, place, processes_, stop_, observer);
    } catch (const core::CheckError& error) {
      records_.write_failure(run, error.what());
    }
  }

  const Plan& plan_;
  train::loop::Processes& processes_;
  const std::atomic<bool>& stop_;
  Watcher& watcher_;
  Records records_;
  std::int64_t batch_ = 0;
  std::vector<PlannedRun> runs_;
  std::int64_t done_ = 0;
};

}  // namespace

Ending carry_out(const Plan& plan, train::loop::Processes& processes, const std::atomic<bool>& stop,
                 Watcher& watcher) {
  check(plan);
  if (processes.size() > 1) {
    throw core::UsageError("[compare] a comparison is one process: leave out mpirun");
  }
  return Comparison(plan, processes, stop, watcher).carry_out();
}

}  // namespace comparison
