#include "bench/reduce.h"

#include <gtest/gtest.h>

#include "scalecom/comm/inproc/inproc.h"
#include "scalecom/core/error.h"

namespace bench {
namespace {

namespace comm = scalecom::comm;
namespace core = scalecom::core;

TEST(ReducedTensors, AreMatricesAndARow) {
  const auto tensors = reduced_tensors(2'000'003);
  ASSERT_EQ(tensors.size(), 3U);
  EXPECT_EQ(tensors[1].shape, (std::vector<std::int64_t>{1000, 1000}));
  EXPECT_EQ(tensors[2].shape, (std::vector<std::int64_t>{1, 3}));
}

TEST(MeasureReduce, CountsWhatTheFormulaSays) {
  const ReducePlan plan{50'000, {"dense", "scalecom,first=compressed", "gtopk,rate=100"}, 3, ""};
  std::vector<ReduceFigures> first;
  comm::inproc::run(3, [&](comm::Communicator& world) {
    const auto rows = measure_reduce(plan, world, {}, [](int, int) {});
    if (world.rank() == 0) first = rows;
  });
  ASSERT_EQ(first.size(), plan.methods.size());
  for (const ReduceFigures& row : first) {
    EXPECT_EQ(row.moved, row.formula) << row.method;
    EXPECT_GT(row.moved.sent, 0);
    EXPECT_GT(row.reduce_ms, 0);
    EXPECT_GT(row.alone_ms, 0);
  }
}

TEST(MeasureReduce, RefusesPlansThatCannotBeRun) {
  const auto alone = comm::inproc::make_world(1);
  const auto refused = [&](const ReducePlan& plan) {
    EXPECT_THROW(measure_reduce(plan, *alone.front(), {}, [](int, int) {}), core::UsageError);
  };
  refused({0, {"dense"}, 1, ""});
  refused({10, {"dense"}, 0, ""});
  refused({10, {"dense"}, 1 << 30, ""});
  refused({10, {"nope"}, 1, ""});
  refused({10, {"dense"}, 1, "no such device"});
}

}  // namespace
}  // namespace bench
