#pragma once

#include <chrono>
#include <memory>

#include "scalecom/comm/link.h"

namespace scalecom::torch {

/// Who started this process and its peers, as torchrun's variables tell: RANK, WORLD_SIZE,
/// MASTER_ADDR and MASTER_PORT, which other launchers set too.
enum class Launcher { kNone, kTorchrun, kItsVariables };
Launcher launcher();

/// The processes that were started together, which meet at a store of torch at the master's
/// address: torchrun's own, or the first process's.
class Torchrun {
 public:
  /// UsageError for a variable that is missing or makes no sense; PeerError where the master cannot
  /// be reached before the deadline.
  explicit Torchrun(std::chrono::milliseconds deadline);
  ~Torchrun();
  Torchrun(const Torchrun&) = delete;
  Torchrun& operator=(const Torchrun&) = delete;

  int rank() const;
  int size() const;

  /// The processes, for a world of `ranks` ranks that is divided among them. Every process calls it
  /// with the same number, in the same order.
  std::shared_ptr<comm::Link> open_link(std::chrono::milliseconds deadline, int ranks);

 private:
  struct Meeting;
  std::unique_ptr<Meeting> meeting_;
};

}  // namespace scalecom::torch
