#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "scalecom/comm/communicator.h"
#include "scalecom/comm/mpi/mpi.h"
#include "scalecom/torch/torchrun.h"

namespace train::loop {

/// The processes that train together: those of torchrun or mpirun, or this one alone.
class Processes {
 public:
  explicit Processes(std::chrono::milliseconds deadline);

  int rank() const { return between_->rank(); }
  int size() const { return between_->size(); }
  /// The one that writes and prints.
  bool first() const { return rank() == 0; }
  /// Between the processes, one rank each.
  scalecom::comm::Communicator& between() { return *between_; }

  /// A world of `learners` ranks, divided over the processes: the ends of this process's own.
  std::vector<std::unique_ptr<scalecom::comm::Communicator>> make_world(int learners);

  /// core::UsageError, the same everywhere, where the processes do not all have the same settings,
  /// which are the members of a JSON object.
  void compare(const std::string& settings);

  /// After a core::PeerError: ends the whole job where the end of one process does not.
  void end_job(int status);

 private:
  std::chrono::milliseconds deadline_;
  std::optional<scalecom::comm::mpi::Session> session_;
  std::optional<scalecom::torch::Torchrun> torchrun_;
  std::unique_ptr<scalecom::comm::Communicator> between_;
};

}  // namespace train::loop
