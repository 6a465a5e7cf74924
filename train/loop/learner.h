#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <limits>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <vector>

#include "scalecom/comm/communicator.h"
#include "scalecom/core/array.h"
#include "scalecom/core/stream.h"
#include "scalecom/layout/layout.h"
#include "scalecom/methods/method.h"
#include "train/data/order.h"
#include "train/loop/checkpoint.h"
#include "train/loop/losses.h"
#include "train/loop/replica.h"
#include "train/machine/memory.h"
#include "train/runs/config.h"
#include "train/runs/run_folder.h"
#include "train/similarity/probe.h"

namespace train::loop {

/// Who watches a run; called from learner 0's thread.
class Observer {
 public:
  virtual ~Observer() = default;
  /// Before the first step that is taken now; `done` are over already.
  virtual void on_start(std::int64_t done, std::int64_t steps) = 0;
  /// `loss` is the last that is known, on a GPU that of the step before; not a number where none
  /// is.
  virtual void on_step(std::int64_t done, double loss) = 0;
  /// A line of metrics.jsonl.
  virtual void on_metrics(const nlohmann::ordered_json& line) = 0;
};

/// What the learners of a process share.
struct Job {
  const runs::Config& config;
  Replica& replica;
  runs::RunFolder& folder;
  Observer& observer;
  const std::atomic<bool>& stop;  ///< set from outside, in any process: stop after this step
  int process = 0;
  const machine::DeviceMemory& device_memory;
  /// Steps between checkpoints; nothing for one with each line of metrics.
  std::optional<std::int64_t> checkpoint_every;
  std::optional<std::filesystem::path> checkpoint;  ///< to go on from
};

/// One learner: a rank with its own data order, gradient, method and memory.
class Learner {
 public:
  Learner(const Job& job, scalecom::comm::Communicator& world);

  /// Trains to the end, or until somebody stops it, and leaves a checkpoint in both cases. Every
  /// learner returns after the same step. Learner 0 writes the run's folder.
  void run();

  /// Afterwards: steps done.
  std::int64_t done() const { return done_; }

 private:
  /// What this rank's method has moved so far: between groups, where it has some, and inside.
  struct Moved {
    scalecom::comm::Traffic between;
    scalecom::comm::Traffic inside;
  };
  Moved moved() const;
  void check_step(const char* part, std::int64_t step, std::int64_t standing) const;
  /// Takes the device's memory that a learner needs.
  void prepare();
  /// `replica`: of the method, on which all learners have agreed.
  void restore(const scalecom::methods::Learner& holder);
  /// One step of training; whether anybody wants to stop.
  bool step();
  /// The loss and the gradient, alone or for all learners of the process at once.
  void compute(const tasks::Shard& shard);
  /// Everybody's oldest loss, where more than `lag` are under way, and whether anybody wants to
  /// stop.
  bool confer(std::int64_t lag);
  /// Waits for all losses.
  void settle();
  /// Gives all processes learner 0's running figures.
  void share_figures();
  /// Of all of the test set, of which each learner does its share.
  tasks::Score evaluate();
  void report_metrics();
  void report_similarity();
  void write_checkpoint();
  void write_transcripts();
  void finish();
  /// The line of the last step.
  nlohmann::ordered_json last_metrics() const;

  bool is_first() const { return world_.rank() == 0; }
  /// Of the training set, in parts of it too.
  double epochs_after(std::int64_t steps) const;
  /// Whether an epoch has just ended after which figures are taken: each, or of more than a hundred
  /// one in so many that a hundred are left at most. Of a few steps each, most of the time would go
  /// into the figures.
  bool at_milestone() const;
  bool checkpoint_due() const;
  /// Whether learners are compared in the step that comes next.
  bool similarity_due() const;
  double seconds() const;

  const Job& job_;
  scalecom::comm::Communicator& world_;
  /// Apart from the world, whose traffic is what is measured.
  std::unique_ptr<scalecom::comm::Communicator> control_;
  /// The learners of this process.
  std::unique_ptr<scalecom::comm::Communicator> neighbours_;
  std::unique_ptr<scalecom::methods::Method> method_;
  scalecom::layout::Layout layout_;
  data::Order order_;
  std::vector<std::int64_t> samples_;
  scalecom::core::Stream stream_;
  scalecom::core::Array<float> gradient_;
  std::optional<Losses> losses_;
  std::optional<similarity::Probe> probe_;  // where it is asked for

  std::int64_t warmup_ = 0;  // steps that the method itself calls its warm-up
  std::int64_t first_ = 0;   // the first step taken here
  std::int64_t done_ = 0;
  runs::Tally tally_;
  std::int64_t known_ = 0;  // steps whose loss is known
  double last_loss_ = std::numeric_limits<double>::quiet_NaN();
  // For the next line of metrics.
  double loss_sum_ = 0;
  std::int64_t loss_count_ = 0;
  double seconds_before_ = 0;
  std::chrono::steady_clock::time_point started_;
};

}  // namespace train::loop
