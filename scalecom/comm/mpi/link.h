#pragma once

#include <mpi.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>

#include "scalecom/comm/link.h"

/// What the mpi and hybrid fabrics share. Nobody else includes this.
namespace scalecom::comm::mpi {

/// Held for every call of MPI: threads of one process take turns (MPI_THREAD_SERIALIZED).
std::mutex& mutex();

/// Whether a link of this process has broken, so that MPI_Finalize may never return.
bool any_link_broken();

/// Whether MPI was begun and not ended; the mutex is held.
bool is_running();

/// "MPI_ERR_TRUNCATE: message truncated"; the mutex is held.
std::string error_text(int code);

/// How a thread waits for something that MPI does: first with all its might, as most waits are
/// short; then giving way to other threads; then asleep in between, so that many threads on few
/// cores do not keep each other from working.
class Patience {
 public:
  /// `bytes` are under way; while they may be moving it does not sleep. `threads` wait in turn.
  Patience(std::int64_t bytes, int threads);
  void pause();

 private:
  Fabric::Clock::time_point busy_until_;
  std::chrono::microseconds nap_;
  int tries_ = 0;
};

/// The processes of MPI_COMM_WORLD, over a duplicate of it that is ours alone.
class Link final : public comm::Link, public std::enable_shared_from_this<Link> {
 public:
  /// A link for a world of `ranks` ranks divided among the processes, or one a process where it is
  /// kOneEach. Every process calls it. UsageError where MPI is not running, or where the processes
  /// come with different numbers; PeerError where not all have come before the deadline.
  static constexpr int kOneEach = 0;
  static std::shared_ptr<Link> open(std::chrono::milliseconds deadline, int ranks);
  ~Link() override;
  Link(const Link&) = delete;
  Link& operator=(const Link&) = delete;

  MPI_Comm comm() const { return comm_; }
  int process() const override { return process_; }
  int processes() const override { return processes_; }
  int threads() const override { return threads_; }
  std::unique_ptr<comm::Endpoint> endpoint(std::vector<Address> ranks, int rank,
                                           std::int64_t context) override;
  std::int64_t largest_tag() const { return largest_tag_; }

  /// A peer was lost or late. MPI may still hold messages of ours, so the duplicate is not freed.
  void set_broken();

 private:
  Link(MPI_Comm comm, int ranks);

  MPI_Comm comm_;
  int threads_ = 1;
  int process_ = 0;
  int processes_ = 1;
  std::int64_t largest_tag_ = 0;
  bool broken_ = false;
};

}  // namespace scalecom::comm::mpi
