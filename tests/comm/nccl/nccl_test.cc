#include "scalecom/comm/nccl/nccl.h"

#include <gtest/gtest.h>

#include <string>

#include "scalecom/comm/inproc/inproc.h"
#include "scalecom/core/error.h"

/// What is said where NCCL is not there, or asked for what it cannot do.
namespace scalecom::comm::nccl {
namespace {

std::string usage_error_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const core::UsageError& error) {
    return error.what();
  }
  return "no UsageError";
}

TEST(NcclTest, IsRefusedWithoutNccl) {
  if (is_available()) GTEST_SKIP() << "this build has NCCL";
  inproc::run(1, [](Communicator& comm) {
    for (const std::string& error :
         {usage_error_of([] { make_id(); }),
          usage_error_of([] { make_communicator(Id{}, 0, 1, core::Device::cuda()); }),
          usage_error_of([&] { make_communicator(comm, core::Device::cuda()); })}) {
      EXPECT_NE(error.find("SCALECOM_NCCL=ON"), std::string::npos) << error;
    }
  });
}

TEST(NcclTest, RanksAreInTheWorldAndOnAGpu) {
  if (!is_available()) GTEST_SKIP() << "this build has no NCCL";
  EXPECT_THROW(make_communicator(Id{}, 2, 2, core::Device::cuda()), core::UsageError);
  EXPECT_THROW(make_communicator(Id{}, 0, 0, core::Device::cuda()), core::UsageError);
  EXPECT_THROW(make_communicator(Id{}, 0, 1, core::Device{}), core::UsageError);
  EXPECT_THROW(make_communicator(Id{}, 0, 1, core::Device::cuda(99)), core::UsageError);
}

TEST(NcclTest, MistakeOfOneRankIsToldToAll) {
  if (!is_available()) GTEST_SKIP() << "this build has no NCCL";
  inproc::run(3, [](Communicator& comm) {
    const std::string error = usage_error_of([&] { make_communicator(comm, core::Device{}); });
    EXPECT_NE(error.find("[nccl] a rank on cpu"), std::string::npos) << error;
  });
}

}  // namespace
}  // namespace scalecom::comm::nccl
