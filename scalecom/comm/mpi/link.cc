#include "scalecom/comm/mpi/link.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <thread>

#include "scalecom/comm/mpi/endpoint.h"
#include "scalecom/comm/mpi/mpi.h"
#include "scalecom/comm/traffic.h"
#include "scalecom/core/error.h"
#include "scalecom/core/text.h"

namespace scalecom::comm::mpi {
namespace {

using std::chrono::microseconds;

std::atomic<bool> broken_somewhere{false};

constexpr int kEagerTries = 64;
constexpr microseconds kBusy{1000};
constexpr std::int64_t kBytesPerMicrosecond = 1000;
constexpr microseconds kNap{50};
constexpr microseconds kLongestNap{2000};

/// What MPI does on its own until `until`, and where it writes; left to MPI when it comes too late.
struct Opening {
  MPI_Comm comm = MPI_COMM_NULL;
  std::array<std::int64_t, 2> mine{};
  std::array<std::int64_t, 2> all{};
  MPI_Request request = MPI_REQUEST_NULL;
};

/// Starts something that has a request, and waits for it.
bool done_in_time(Opening& opening, const std::function<int()>& start,
                  Fabric::Clock::time_point until) {
  const auto check = [](int code) {
    if (code != MPI_SUCCESS) throw core::PeerError("[mpi] " + error_text(code));
  };
  {
    const std::lock_guard lock(mutex());
    check(start());
  }
  for (Patience patience(0, 1);; patience.pause()) {
    int done = 0;
    const std::lock_guard lock(mutex());
    check(MPI_Test(&opening.request, &done, MPI_STATUS_IGNORE));
    if (done != 0) return true;
    if (Fabric::Clock::now() >= until) return false;
  }
}

void check_running() {
  const std::lock_guard lock(mutex());
  if (!is_running()) {
    throw core::UsageError("[mpi] MPI is not running; make an mpi::Session first, and keep it");
  }
  int level = 0;
  MPI_Query_thread(&level);
  if (level < MPI_THREAD_SERIALIZED) {
    throw core::UsageError(
        "[mpi] MPI was begun with too low a thread level; it is MPI_THREAD_SERIALIZED at least");
  }
}

}  // namespace

std::mutex& mutex() {
  static std::mutex mutex;
  return mutex;
}

bool any_link_broken() {
  return broken_somewhere;
}

bool is_running() {
  int begun = 0;
  int ended = 0;
  MPI_Initialized(&begun);
  MPI_Finalized(&ended);
  return begun != 0 && ended == 0;
}

std::string error_text(int code) {
  std::array<char, MPI_MAX_ERROR_STRING> text{};
  int length = 0;
  MPI_Error_string(code, text.data(), &length);
  return {text.data(), static_cast<std::size_t>(length)};
}

Patience::Patience(std::int64_t bytes, int threads)
    : busy_until_(Fabric::Clock::now() + kBusy + microseconds(bytes / kBytesPerMicrosecond)),
      nap_(std::min(kNap * threads, kLongestNap)) {}

void Patience::pause() {
  if (++tries_ < kEagerTries) return;
  if (Fabric::Clock::now() < busy_until_) {
    std::this_thread::yield();
  } else {
    std::this_thread::sleep_for(nap_);
  }
}

std::shared_ptr<Link> Link::open(std::chrono::milliseconds deadline, int ranks) {
  check_running();
  const auto until = Fabric::Clock::now() +
                     std::min<std::chrono::milliseconds>(deadline, std::chrono::hours(24 * 365));
  auto opening = std::make_unique<Opening>();
  Opening& work = *opening;
  const auto wait_for = [&](const std::function<int()>& start) {
    if (done_in_time(work, start, until)) return;
    broken_somewhere = true;
    // MPI goes on writing there.
    (void)opening.release();
    throw core::PeerError(core::concat("[mpi] deadline of ", deadline.count(),
                                       " ms passed before all processes had joined"));
  };
  wait_for([&] { return MPI_Comm_idup(MPI_COMM_WORLD, &work.comm, &work.request); });
  std::shared_ptr<Link> link(new Link(work.comm, ranks));

  work.mine = {ranks, -ranks};
  // Until it is done, the communicator must not be freed.
  link->broken_ = true;
  wait_for([&] {
    return MPI_Iallreduce(work.mine.data(), work.all.data(), 2, MPI_INT64_T, MPI_MAX, work.comm,
                          &work.request);
  });
  link->broken_ = false;
  if (work.all[0] != -work.all[1]) {
    // The analyzer knows MPI_Wait only.
    // NOLINTBEGIN(clang-analyzer-optin.mpi.MPI-Checker)
    throw core::UsageError(
        core::concat("[mpi] the processes disagree on the number of ranks: from ", -work.all[1],
                     " to ", work.all[0], "; it is the same everywhere"));
    // NOLINTEND(clang-analyzer-optin.mpi.MPI-Checker)
  }
  return link;
}

Link::Link(MPI_Comm comm, int ranks) : comm_(comm) {
  const std::lock_guard lock(mutex());
  MPI_Comm_set_errhandler(comm_, MPI_ERRORS_RETURN);
  MPI_Comm_rank(comm_, &process_);
  MPI_Comm_size(comm_, &processes_);
  // The first share is the longest.
  if (ranks != kOneEach) threads_ = static_cast<int>(share(ranks, processes_, 0).size());
  int* bound = nullptr;
  int found = 0;
  MPI_Comm_get_attr(comm_, MPI_TAG_UB, static_cast<void*>(&bound), &found);
  // The least that the MPI standard promises.
  largest_tag_ = found != 0 ? *bound : 32767;
}

Link::~Link() {
  const std::lock_guard lock(mutex());
  if (!broken_ && is_running()) MPI_Comm_free(&comm_);
}

std::unique_ptr<comm::Endpoint> Link::endpoint(std::vector<Address> ranks, int rank,
                                               std::int64_t context) {
  return std::make_unique<Endpoint>(shared_from_this(), std::move(ranks), rank, context);
}

void Link::set_broken() {
  const std::lock_guard lock(mutex());
  broken_ = true;
  broken_somewhere = true;
}

std::shared_ptr<comm::Link> open_link(std::chrono::milliseconds deadline, int ranks) {
  return Link::open(deadline, ranks);
}

}  // namespace scalecom::comm::mpi
