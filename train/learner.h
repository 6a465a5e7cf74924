#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <vector>

#include "scalecom/comm/communicator.h"
#include "scalecom/core/aligned_array.h"
#include "scalecom/layout/layout.h"
#include "scalecom/methods/method.h"
#include "train/checkpoint.h"
#include "train/config.h"
#include "train/data/order.h"
#include "train/replica.h"
#include "train/run_folder.h"

namespace train {

/// Who watches a run; called from learner 0's thread.
class Observer {
 public:
  virtual ~Observer() = default;
  /// Before the first step that is taken now; `done` are over already.
  virtual void on_start(std::int64_t done, std::int64_t steps) = 0;
  virtual void on_step(std::int64_t done, double loss) = 0;
  /// A line of metrics.jsonl.
  virtual void on_metrics(const nlohmann::ordered_json& line) = 0;
};

/// What the learners of a process share.
struct Job {
  const Config& config;
  Replica& replica;
  RunFolder& folder;
  Observer& observer;
  const std::atomic<bool>& stop;  ///< set from outside, in any process: stop after this step
  int process = 0;
  /// Steps between checkpoints; nothing for one at the end of each epoch.
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
  void restore();
  /// One step of training; whether anybody wants to stop.
  bool step();
  /// Of all of the test set, of which each learner does its share.
  Score evaluate();
  void report_metrics();
  void write_checkpoint();
  void finish();

  bool is_first() const { return world_.rank() == 0; }
  bool epoch_ended() const;
  bool checkpoint_due() const;
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
  scalecom::core::AlignedArray<float> gradient_;

  std::int64_t warmup_ = 0;  // steps that the method itself calls its warm-up
  std::int64_t first_ = 0;   // the first step taken here
  std::int64_t done_ = 0;
  Tally tally_;
  // Learner 0's, for the next line of metrics.
  double loss_ = 0;
  std::int64_t losses_ = 0;
  double seconds_before_ = 0;
  std::chrono::steady_clock::time_point started_;
};

}  // namespace train
