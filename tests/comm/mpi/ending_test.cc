// A rank that stops after the last call, when the others are about to end. Run by mpirun.

#include <gtest/gtest.h>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <optional>

#include "scalecom/comm/mpi/mpi.h"

namespace scalecom::comm::mpi {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::seconds kDeadline{1};

TEST(EndingTest, DoesNotWaitForARankThatHasStopped) {
  if (!is_launched()) GTEST_SKIP() << "it takes mpirun";
  std::optional<Session> session(kDeadline);
  const bool stops = session->rank() == session->size() - 1;
  make_communicator(kDeadline)->barrier();
  if (stops) raise(SIGSTOP);  // until the job is ended
  const auto begin = Clock::now();
  session.reset();
  const auto taken = Clock::now() - begin;
  // Before the result is known to gtest, as the rank that has stopped must be ended too.
  const bool in_time = taken >= kDeadline && taken < kDeadline + std::chrono::seconds(20);
  if (!in_time)
    std::fprintf(stderr, "the end took %g s\n", std::chrono::duration<double>(taken).count());
  Session::end_job(in_time ? 0 : 1);
}

}  // namespace
}  // namespace scalecom::comm::mpi
