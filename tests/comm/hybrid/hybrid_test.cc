#include "scalecom/comm/hybrid/hybrid.h"

#include <gtest/gtest.h>

#include "scalecom/comm/mpi/mpi.h"
#include "scalecom/core/error.h"
#include "tests/comm/world.h"

namespace scalecom::comm::hybrid {
namespace {

TEST(HybridTest, ProcessesHaveTheirSharesOfTheRanks) {
  if (!mpi::is_launched()) GTEST_SKIP() << "needs mpirun";
  const mpi::Session session;
  for (const int size : {1, 2, 3, 8, 128}) {
    const auto world = make_world(size);
    const Share own = share(size, session.size(), session.rank());
    ASSERT_EQ(static_cast<std::int64_t>(world.size()), own.size());
    for (std::size_t i = 0; i < world.size(); ++i) {
      EXPECT_EQ(world[i]->rank(), own.begin + static_cast<std::int64_t>(i));
      EXPECT_EQ(world[i]->size(), size);
    }
  }
}

TEST(HybridTest, ProcessesThatDisagreeAreAllTold) {
  if (!mpi::is_launched()) GTEST_SKIP() << "needs mpirun";
  const mpi::Session session;
  EXPECT_THROW(make_world(0), core::UsageError);
  if (session.size() > 1) {
    EXPECT_THROW(make_world(5 + session.rank()), core::UsageError);
  }
  EXPECT_NO_THROW(make_world(5));
}

TEST(HybridTest, ArraysOnAGpuAreRefusedAndHarmNothing) {
  if (!mpi::is_launched()) GTEST_SKIP() << "needs mpirun";
  const mpi::Session session;
  const core::Stream stream = core::Stream::wrap(core::Device::cuda(), nullptr);
  const auto check = [&](Communicator& comm) {
    std::vector<float> ones(3, 1.0F);
    try {
      comm.all_reduce(ones, stream);
      ADD_FAILURE() << "nothing was thrown";
    } catch (const core::UsageError& error) {
      EXPECT_NE(std::string(error.what()).find("comm/nccl"), std::string::npos) << error.what();
    }
    comm.all_reduce(ones);
    EXPECT_EQ(ones[0], static_cast<float>(comm.size()));
  };
  check(*mpi::make_communicator());
  auto ends = make_world(session.size());
  check(*ends.front());
}

}  // namespace
}  // namespace scalecom::comm::hybrid

int main(int argc, char** argv) {
  return scalecom::comm::testing::run_all_tests(argc, argv);
}
