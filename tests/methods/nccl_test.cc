#include <gtest/gtest.h>

#include <cmath>

#include "scalecom/comm/mpi/mpi.h"
#include "scalecom/comm/nccl/nccl.h"
#include "scalecom/core/text.h"
#include "scalecom/methods/method.h"
#include "tests/comm/world.h"
#include "tests/graph.h"
#include "tests/methods/ranks.h"

// Methods over NCCL, each rank a process with its arrays on a GPU, against the same ranks as
// threads in host memory. Sums of two have no order, so two ranks agree to the bit; memories always
// do.
namespace scalecom::methods {
namespace {

using scalecom::testing::Graph;
using testing::Gradients;
using testing::World;

class OverNccl : public ::testing::Test {
 protected:
  void SetUp() override {
    if (core::cuda::device_count() == 0) GTEST_SKIP() << "skipped: no CUDA device";
    if (!comm::nccl::is_available()) GTEST_SKIP() << "skipped: no NCCL in this build";
    if (!comm::mpi::is_launched()) GTEST_SKIP() << "runs under mpirun";
    const auto processes = comm::mpi::make_communicator(std::chrono::seconds(60));
    end_ = comm::nccl::make_communicator(*processes, device_, std::chrono::seconds(60));
    stream_ = core::Stream::cuda(device_);
    gradient_ = core::Array<float>(device_, layout_.elements());
  }

  std::size_t rank() const { return static_cast<std::size_t>(end_->rank()); }

  void begin(const std::string& spec) {
    here_ = make(spec);
    threads_ = std::make_unique<World>(end_->size(), spec);
    random_.seed(7);
  }
  /// A new gradient of all ranks: this one's goes to the GPU.
  void draw() {
    all_ = testing::normal(end_->size(), layout_.elements(), random_);
    core::cuda::copy(gradient_.data(), all_[rank()].data(), 4 * layout_.elements(), stream_);
    core::cuda::synchronize(stream_);
  }
  void reduce() {
    here_->reduce({gradient_.data(), layout_.elements(), core::DType::kFloat32, device_}, layout_,
                  *end_, stream_);
  }
  /// The result of what was drawn, by whatever means, is that of the threads.
  void expect_result(const std::string& when) {
    std::vector<float> result(static_cast<std::size_t>(layout_.elements()));
    core::cuda::copy(result.data(), gradient_.data(), 4 * layout_.elements(), stream_);
    core::cuda::synchronize(stream_);
    threads_->reduce(all_, layout_);
    if (end_->size() <= 2) {
      EXPECT_TRUE(testing::same_bits(result, all_[rank()])) << when;
      return;
    }
    for (std::size_t i = 0; i < result.size(); ++i) {
      const float expected = all_[rank()][i];
      ASSERT_NEAR(result[i], expected, 1e-5 * (1 + std::abs(expected))) << when << ", entry " << i;
    }
  }
  void expect_memories() {
    const auto here = here_->memories();
    const auto there = threads_->method(end_->rank()).memories();
    ASSERT_EQ(here.size(), there.size());
    for (std::size_t i = 0; i < here.size(); ++i) {
      EXPECT_TRUE(testing::same_bits({here[i].values.begin(), here[i].values.end()},
                                     {there[i].values.begin(), there[i].values.end()}))
          << here[i].name;
    }
  }

  const core::Device device_ = core::Device::cuda();
  const layout::Layout layout_ = testing::layout_of({{33, 1}, {5000, 10}, {777, 25}, {20000, 100}});
  std::unique_ptr<comm::Communicator> end_;
  core::Stream stream_;
  core::Array<float> gradient_;
  std::unique_ptr<Method> here_;
  std::unique_ptr<World> threads_;
  std::mt19937 random_;
  Gradients all_;
};

TEST_F(OverNccl, IsTheSameAsOverThreads) {
  for (const char* const spec :
       {"scalecom", "scalecom,leaders=sharded", "scalecom,select=exact", "scalecom,select=random",
        "scalecom,select=chunk:400", "scalecom,warmup=2", "dense", "half,values=bf16"}) {
    begin(spec);
    for (int step = 0; step < 2 * end_->size() + 1; ++step) {
      draw();
      reduce();
      expect_result(spec);
    }
    expect_memories();
  }
}

TEST_F(OverNccl, NarrowValuesAreSummedInOrder) {
  for (const char* const spec : {"scalecom,values=bf16", "scalecom,values=fp16"}) {
    begin(spec);
    for (int step = 0; step < 5; ++step) {
      draw();
      reduce();
      expect_result(spec);
    }
    expect_memories();
  }
}

TEST_F(OverNccl, AGraphALeaderIsReplayedInTurn) {
  begin("scalecom");
  for (int step = 0; step < end_->size(); ++step) {
    draw();
    reduce();
    expect_result("before the capture");
  }
  std::vector<std::unique_ptr<Graph>> graphs;
  for (int leader = 0; leader < end_->size(); ++leader) {
    graphs.push_back(std::make_unique<Graph>(stream_, [&] { reduce(); }));
  }
  for (int round = 0; round < 3; ++round) {
    for (const auto& graph : graphs) {
      draw();
      graph->replay();
      expect_result("replayed");
    }
  }
  here_->replayed(4 * end_->size());
  draw();
  reduce();
  expect_result("after the replays");
  expect_memories();
}

TEST_F(OverNccl, OneGraphServesShardedLeadersAndRandomDraws) {
  for (const char* const spec : {"scalecom,leaders=sharded", "scalecom,select=random"}) {
    begin(spec);
    draw();
    reduce();
    expect_result(spec);
    const int steps = 2 * end_->size() + 3;
    {
      const Graph graph(stream_, [&] { reduce(); });
      for (int step = 1; step < steps; ++step) {
        draw();
        graph.replay();
        expect_result(core::concat(spec, ", replay ", step));
      }
    }
    here_->replayed(steps);
    draw();
    reduce();
    expect_result("after the replays");
    expect_memories();
  }
}

}  // namespace
}  // namespace scalecom::methods

int main(int argc, char** argv) {
  return scalecom::comm::testing::run_all_tests(argc, argv);
}
