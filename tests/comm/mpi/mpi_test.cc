#include "scalecom/comm/mpi/mpi.h"

#include <gtest/gtest.h>

#include <string>

#include "scalecom/comm/hybrid/hybrid.h"
#include "scalecom/core/error.h"

/// What is said where MPI is not there, or not running.
namespace scalecom::comm::mpi {
namespace {

std::string usage_error_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const core::UsageError& error) {
    return error.what();
  }
  return "no UsageError";
}

TEST(MpiTest, CommunicatorsNeedASession) {
  const std::string expected = is_available() ? "MPI is not running" : "this build has no MPI";
  for (const std::string& error :
       {usage_error_of([] { make_fabric(); }), usage_error_of([] { make_communicator(); }),
        usage_error_of([] { hybrid::make_world(4); })}) {
    EXPECT_NE(error.find(expected), std::string::npos) << error;
  }
}

TEST(MpiTest, SessionIsRefusedWithoutMpi) {
  if (is_available()) GTEST_SKIP() << "this build has MPI";
  const std::string error = usage_error_of([] { const Session session; });
  EXPECT_NE(error.find("SCALECOM_MPI=ON"), std::string::npos) << error;
}

}  // namespace
}  // namespace scalecom::comm::mpi
