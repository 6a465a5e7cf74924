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

}  // namespace
}  // namespace scalecom::comm::hybrid

int main(int argc, char** argv) {
  return scalecom::comm::testing::run_all_tests(argc, argv);
}
