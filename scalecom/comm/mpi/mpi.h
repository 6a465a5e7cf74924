#pragma once

#include <chrono>
#include <memory>

#include "scalecom/comm/collectives.h"
#include "scalecom/comm/link.h"

namespace scalecom::comm::mpi {

/// Whether this build has MPI in it.
bool is_available();

/// Whether this process was started by mpirun (or another launcher that MPI knows).
bool is_launched();

/// MPI_Init with the thread level that this library needs, unless that was done; MPI_Finalize at
/// the end of the session that began it. UsageError where this build has no MPI, or where MPI was
/// begun with too low a level. After a PeerError, or where not all ranks have come to the end
/// before the deadline, MPI is not finalized, as that might never return; a process that ends like
/// this takes the job with it.
class Session {
 public:
  explicit Session(std::chrono::milliseconds deadline = kDefaultDeadline);
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  int rank() const;
  int size() const;

  /// Ends the whole job, every rank of it: for a program that has met a PeerError.
  [[noreturn]] static void end_job(int status);

 private:
  bool all_have_come() const;

  std::chrono::milliseconds deadline_;
  bool ours_ = false;
};

/// The ranks of MPI_COMM_WORLD, one thread each. MPI must be running; every process calls it.
///
/// MPI cannot take back a message that it has begun to send. After a PeerError it may still read
/// the arrays of the call that failed, whenever MPI is used again: keep them, or end the job.
std::unique_ptr<Fabric> make_fabric(std::chrono::milliseconds deadline = kDefaultDeadline);
std::unique_ptr<Communicator> make_communicator(
    std::chrono::milliseconds deadline = kDefaultDeadline);

/// The processes of MPI_COMM_WORLD, for a world of `ranks` ranks that is divided among them. Every
/// process calls it with the same number.
std::shared_ptr<comm::Link> open_link(std::chrono::milliseconds deadline, int ranks);

}  // namespace scalecom::comm::mpi
