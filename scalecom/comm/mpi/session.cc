#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <thread>

#include "scalecom/comm/mpi/link.h"
#include "scalecom/comm/mpi/mpi.h"
#include "scalecom/core/error.h"

namespace scalecom::comm::mpi {
namespace {

constexpr std::chrono::seconds kAbortPatience{1};

}  // namespace

bool is_available() {
  return true;
}

Session::Session(std::chrono::milliseconds deadline) : deadline_(deadline) {
  const std::lock_guard lock(mutex());
  int begun = 0;
  int ended = 0;
  MPI_Initialized(&begun);
  MPI_Finalized(&ended);
  if (ended != 0)
    throw core::UsageError("[mpi] MPI has ended in this process; it begins once only");
  int level = MPI_THREAD_SINGLE;
  if (begun != 0) {
    MPI_Query_thread(&level);
  } else {
    if (const int code = MPI_Init_thread(nullptr, nullptr, MPI_THREAD_SERIALIZED, &level);
        code != MPI_SUCCESS) {
      throw core::UsageError("[mpi] MPI cannot begin: " + error_text(code));
    }
    ours_ = true;
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  }
  if (level < MPI_THREAD_SERIALIZED) {
    if (ours_) MPI_Finalize();
    throw core::UsageError(
        "[mpi] MPI has too low a thread level; begin it with MPI_THREAD_SERIALIZED or more");
  }
}

Session::~Session() {
  const std::lock_guard lock(mutex());
  if (ours_ && is_running() && !any_link_broken() && all_have_come()) MPI_Finalize();
}

// MPI_Finalize waits for all ranks, and knows no deadline. The mutex is held.
bool Session::all_have_come() const {
  const auto late = Fabric::Clock::now() + deadline_;
  MPI_Request arrival = MPI_REQUEST_NULL;
  if (MPI_Ibarrier(MPI_COMM_WORLD, &arrival) != MPI_SUCCESS) return false;
  Patience patience(0, 1);
  for (int done = 0;;) {
    if (MPI_Test(&arrival, &done, MPI_STATUS_IGNORE) != MPI_SUCCESS) return false;
    if (done != 0) return true;
    if (Fabric::Clock::now() > late) {
      std::fprintf(stderr, "[mpi] not all ranks came to the end within the deadline of %g s\n",
                   std::chrono::duration<double>(deadline_).count());
      return false;
    }
    patience.pause();
  }
}

int Session::rank() const {
  const std::lock_guard lock(mutex());
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  return rank;
}

int Session::size() const {
  const std::lock_guard lock(mutex());
  int size = 0;
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  return size;
}

void Session::end_job(int status) {
  std::fflush(nullptr);
  // MPI_Abort returns when the daemons have ended the job, of which one may be out of reach; mine
  // ends the job too when it sees that this process is gone.
  std::thread([status] {
    std::this_thread::sleep_for(kAbortPatience);
    std::_Exit(status);
  }).detach();
  const std::lock_guard lock(mutex());
  if (is_running()) MPI_Abort(MPI_COMM_WORLD, status);
  std::_Exit(status);
}

}  // namespace scalecom::comm::mpi
