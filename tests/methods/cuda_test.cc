#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <atomic>
#include <limits>
#include <thread>

#include "scalecom/core/cuda/check.h"
#include "scalecom/core/error.h"
#include "scalecom/core/text.h"
#include "scalecom/methods/method.h"
#include "tests/device.h"
#include "tests/graph.h"
#include "tests/methods/ranks.h"

// What only a GPU can be asked: graphs, streams that the host does not wait for, launches, and the
// mistakes that can be made with devices.
namespace scalecom::methods {
namespace {

using scalecom::testing::Graph;
using testing::layout_of;

constexpr core::Device kDevice{core::Device::Kind::kCuda, 0};

/// A rank alone, with a gradient on the GPU.
struct Alone {
  Alone(const std::string& spec, layout::Layout given)
      : layout(std::move(given)),
        method(make(spec)),
        end(std::move(comm::inproc::make_world(1).front())),
        stream(core::Stream::cuda(kDevice)),
        gradient(kDevice, layout.elements()) {}

  core::Buffer buffer() {
    return {gradient.data(), layout.elements(), core::DType::kFloat32, kDevice};
  }
  void reduce() { method->reduce(buffer(), layout, *end, stream); }
  void fill(const std::vector<float>& values) {
    core::cuda::copy(gradient.data(), values.data(), 4 * layout.elements(), stream);
    core::cuda::synchronize(stream);
  }
  std::vector<float> result() {
    std::vector<float> values(static_cast<std::size_t>(layout.elements()));
    core::cuda::copy(values.data(), gradient.data(), 4 * layout.elements(), stream);
    core::cuda::synchronize(stream);
    return values;
  }

  layout::Layout layout;
  std::unique_ptr<Method> method;
  std::unique_ptr<comm::Communicator> end;
  core::Stream stream;
  core::Array<float> gradient;
};

std::string refusal(const std::function<void()>& call) {
  try {
    call();
  } catch (const core::UsageError& error) {
    return error.what();
  }
  return "";
}

layout::Layout mixed() {
  const layout::Layout flat = layout_of({{13, 1}, {1000, 10}, {777, 25}, {5000, 100}, {64, 1}});
  std::vector<layout::Slice> slices(flat.slices().begin(), flat.slices().end());
  slices[1].shape = {20, 50};
  slices[3].shape = {50, 20, 5};
  return layout::Layout(std::move(slices));
}

TEST(OnGpu, ACapturedStepIsReplayedAsAnyOther) {
  for (const char* const spec :
       {"scalecom", "scalecom,leaders=sharded", "scalecom,select=random", "scalecom,select=exact",
        "scalecom,select=chunk:500", "scalecom,values=bf16", "dense", "half", "powersgd,rank=2"}) {
    Alone eager(spec, mixed());
    Alone replayed(spec, mixed());
    std::mt19937 random(3);
    std::unique_ptr<Graph> graph;
    for (int step = 0; step < 7; ++step) {
      const auto gradient = testing::normal(1, eager.layout.elements(), random).front();
      eager.fill(gradient);
      eager.reduce();
      replayed.fill(gradient);
      if (step == 0) {
        replayed.reduce();
      } else {
        if (!graph) {
          graph = std::make_unique<Graph>(replayed.stream, [&] { replayed.reduce(); });
        }
        graph->replay();
      }
      ASSERT_TRUE(testing::same_bits(replayed.result(), eager.result())) << spec << " " << step;
    }
    // And on without the graph.
    replayed.method->replayed(7);
    EXPECT_EQ(replayed.method->steps(), 7);
    const auto gradient = testing::normal(1, eager.layout.elements(), random).front();
    eager.fill(gradient);
    eager.reduce();
    replayed.fill(gradient);
    replayed.reduce();
    EXPECT_TRUE(testing::same_bits(replayed.result(), eager.result())) << spec;
  }
}

// What belongs to a layout that is no longer used is freed as the captured step begins.
TEST(OnGpu, AnOlderLayoutMayGoWhileAStepIsCaptured) {
  const layout::Layout older = layout_of({{13, 1}, {1000, 10}, {777, 50}, {5000, 100}, {64, 1}});
  Alone eager("scalecom", mixed());
  Alone captured("scalecom", mixed());
  std::mt19937 random(4);
  const auto gradient = testing::normal(1, older.elements(), random).front();
  for (Alone* const rank : {&eager, &captured}) {
    rank->fill(gradient);
    rank->method->reduce(rank->buffer(), older, *rank->end, rank->stream);
    rank->fill(gradient);
    rank->reduce();
    rank->fill(gradient);
  }
  eager.reduce();
  const Graph graph(captured.stream, [&] { captured.reduce(); });
  graph.replay();
  EXPECT_TRUE(testing::same_bits(captured.result(), eager.result()));
}

TEST(OnGpu, ALayoutIsReducedOnceBeforeItIsCaptured) {
  Alone rank("scalecom", mixed());
  rank.fill(std::vector<float>(static_cast<std::size_t>(rank.layout.elements()), 1.0F));
  const std::string what = refusal([&] { Graph(rank.stream, [&] { rank.reduce(); }); });
  EXPECT_NE(what.find("take one step before capturing"), std::string::npos) << what;
  EXPECT_NO_THROW(rank.reduce());
}

TEST(OnGpu, ALayoutIsCompressedOnceBeforeItIsCaptured) {
  for (const char* const method : {"scalecom", "topk", "powersgd"}) {
    Alone rank(core::concat(method, ",warmup=1"), mixed());
    const std::vector<float> ones(static_cast<std::size_t>(rank.layout.elements()), 1.0F);
    rank.fill(ones);
    rank.reduce();
    const std::string what = refusal([&] { Graph(rank.stream, [&] { rank.reduce(); }); });
    EXPECT_NE(what.find("no step of this kind"), std::string::npos) << method << ": " << what;
    rank.fill(ones);
    rank.reduce();
    EXPECT_NO_THROW(Graph(rank.stream, [&] { rank.reduce(); })) << method;
  }
}

// A memory from before a second warm-up, whose steps were refused: it waits for the step after it.
TEST(OnGpu, ARefusedCaptureLeavesTheMemories) {
  Alone rank("scalecom,beta=1", mixed());
  const auto elements = static_cast<std::size_t>(rank.layout.elements());
  rank.fill(std::vector<float>(elements, 1.0F));
  rank.reduce();
  rank.method->configure("warmup=2");
  rank.fill(std::vector<float>(elements, std::numeric_limits<float>::quiet_NaN()));
  rank.reduce();
  const auto held = [&] {
    std::vector<float> all;
    for (const NamedMemory& memory : rank.method->memories()) {
      all.insert(all.end(), memory.values.begin(), memory.values.end());
    }
    return all;
  };
  const std::vector<float> before = held();
  ASSERT_FALSE(before.empty());
  rank.fill(std::vector<float>(elements, 1.0F));
  EXPECT_NE(refusal([&] { Graph(rank.stream, [&] { rank.reduce(); }); }), "");
  EXPECT_TRUE(testing::same_bits(held(), before));
}

TEST(OnGpu, AStepThatTheHostLooksAtIsNotCaptured) {
  for (const char* const spec : {"scalecom,nonfinite=error", "scalecom,check=conserve"}) {
    Alone rank(spec, mixed());
    rank.fill(std::vector<float>(static_cast<std::size_t>(rank.layout.elements()), 1.0F));
    rank.reduce();
    const std::string what = refusal([&] { Graph(rank.stream, [&] { rank.reduce(); }); });
    EXPECT_NE(what.find("nonfinite=error"), std::string::npos) << what;
    EXPECT_NO_THROW(rank.reduce()) << spec;
  }
}

TEST(OnGpu, TheHostDoesNotWaitForTheStream) {
  for (const char* const spec : {"scalecom", "scalecom,leaders=sharded", "scalecom,select=random",
                                 "scalecom,select=exact", "scalecom,values=fp16", "dense"}) {
    Alone rank(spec, mixed());
    rank.fill(std::vector<float>(static_cast<std::size_t>(rank.layout.elements()), 1.0F));
    rank.reduce();
    // The stream stands still until the host, having come back from a step, opens the gate.
    std::atomic<bool> open{false};
    const auto stand = [](void* gate) {
      const auto& opened = *static_cast<std::atomic<bool>*>(gate);
      const auto late = std::chrono::steady_clock::now() + std::chrono::seconds(20);
      while (!opened && std::chrono::steady_clock::now() < late) std::this_thread::yield();
    };
    core::cuda::check(
        cudaLaunchHostFunc(static_cast<cudaStream_t>(rank.stream.native()), stand, &open), "gate");
    const auto begin = std::chrono::steady_clock::now();
    for (int step = 0; step < 3; ++step) rank.reduce();
    const auto taken = std::chrono::steady_clock::now() - begin;
    open = true;
    EXPECT_LT(taken, std::chrono::seconds(10)) << spec;
    core::cuda::synchronize(rank.stream);
  }
}

/// The last of two ranks, whose peer names the first entry of every chunk and adds nothing.
class QuietLeader final : public comm::Communicator {
 public:
  int rank() const override { return 1; }
  int size() const override { return 2; }
  void broadcast(std::span<std::byte> data, int root, const core::Stream& stream) override {
    if (root != 0) return;
    core::cuda::set_zero(data.data(), static_cast<std::int64_t>(data.size()), stream);
  }
  void all_reduce(std::span<float> /*data*/, const core::Stream& /*stream*/) override {}
  void reduce_scatter(std::span<float> /*data*/, const core::Stream& /*stream*/) override {}
  void all_gather(std::span<const std::byte> mine, std::span<std::byte> all,
                  std::span<const std::int64_t> /*sizes*/, const core::Stream& stream) override {
    if (stream.device().is_cuda()) return;
    std::copy(mine.begin(), mine.end(), all.begin());
    std::copy(mine.begin(), mine.end(), all.begin() + static_cast<std::ptrdiff_t>(mine.size()));
  }
  void all_to_all(std::span<const std::byte> /*out*/, std::span<const std::int64_t> /*out_sizes*/,
                  std::span<std::byte> /*in*/, std::span<const std::int64_t> /*in_sizes*/,
                  const core::Stream& /*stream*/) override {}
  void send(std::span<const std::byte> /*data*/, int /*to*/,
            const core::Stream& /*stream*/) override {}
  void receive(std::span<std::byte> /*data*/, int /*from*/,
               const core::Stream& /*stream*/) override {}
  void barrier() override {}
  std::unique_ptr<Communicator> split(int /*color*/, int /*key*/) override { return nullptr; }
  std::chrono::milliseconds deadline() const override { return {}; }
  void set_deadline(std::chrono::milliseconds /*deadline*/) override {}
  const comm::Counters& counters() const override { return counters_; }

 private:
  comm::Counters counters_;
};

// A megabyte of gradients in thirty tensors, dense ones among them.
TEST(OnGpu, AMegabyteTakesFourLaunchesAtMost) {
  std::vector<layout::Slice> slices;
  std::int64_t offset = 0;
  for (int i = 0; i < 30; ++i) {
    const std::int64_t length = i % 3 == 2 ? 256 : 12800;
    slices.push_back({core::concat("t", i), offset, length, i % 3 == 2 ? 1.0 : 100.0});
    offset += length;
  }
  ASSERT_GT(4 * offset, 1'000'000);
  Alone leader("scalecom", layout::Layout(slices));
  leader.reduce();
  const Graph led(leader.stream, [&] { leader.reduce(); });
  EXPECT_LE(led.kernels(), 4);
  Alone follower("scalecom", layout::Layout(slices));
  follower.end = std::make_unique<QuietLeader>();
  follower.reduce();
  follower.reduce();  // whose turn it was; the next is the leader's again
  const Graph followed(follower.stream, [&] { follower.reduce(); });
  EXPECT_LE(followed.kernels(), 4);
  RecordProperty("leader_launches", led.kernels());
  RecordProperty("follower_launches", followed.kernels());
  std::cout << "launches: leader " << led.kernels() << ", follower " << followed.kernels() << "\n";
}

TEST(BadDevice, EverythingThatDoesNotBelongTogetherIsRefused) {
  Alone rank("scalecom", layout_of({{1000, 10}}));
  std::vector<float> host(1000, 1.0F);
  const core::Buffer claimed{host.data(), 1000, core::DType::kFloat32, kDevice};
  std::string what =
      refusal([&] { rank.method->reduce(claimed, rank.layout, *rank.end, rank.stream); });
  EXPECT_NE(what.find("said to be on cuda:0 and lies on cpu"), std::string::npos) << what;

  what = refusal([&] { rank.method->reduce(rank.buffer(), rank.layout, *rank.end); });
  EXPECT_NE(what.find("on cuda:0 and its stream on cpu"), std::string::npos) << what;

  core::Buffer odd = rank.buffer();
  odd.data = static_cast<char*>(odd.data) + 2;
  what = refusal([&] { rank.method->reduce(odd, rank.layout, *rank.end, rank.stream); });
  EXPECT_NE(what.find("not aligned"), std::string::npos) << what;

  // A method whose memories are on the GPU, and a gradient that is not.
  rank.fill(host);
  rank.reduce();
  const auto before = rank.method->memories();
  const std::vector<float> kept(before[0].values.begin(), before[0].values.end());
  what = refusal(
      [&] { rank.method->reduce(core::Buffer::of(host.data(), 1000), rank.layout, *rank.end); });
  EXPECT_NE(what.find("memories of this method are on cuda:0"), std::string::npos) << what;
  const auto after = rank.method->memories();
  EXPECT_TRUE(testing::same_bits(kept, {after[0].values.begin(), after[0].values.end()}));
  EXPECT_NO_THROW(rank.reduce());
}

// Where the layout is known from the host, too.
TEST(BadDevice, WhatWorksOnTheHostAloneRefusesAGpu) {
  for (const char* const spec : {"adacomp", "sketched_sgd,rate=10"}) {
    Alone rank(spec, layout_of({{1000, 10}}));
    std::vector<float> host(1000, 1.0F);
    rank.method->reduce(core::Buffer::of(host.data(), 1000), rank.layout, *rank.end);
    const std::string what = refusal([&] { rank.reduce(); });
    EXPECT_NE(what.find("works on gradients in host memory"), std::string::npos) << spec << what;
    EXPECT_NO_THROW(
        rank.method->reduce(core::Buffer::of(host.data(), 1000), rank.layout, *rank.end));
  }
}

TEST(BadDevice, TooLittleMemorySaysHowMuchIsNeeded) {
  std::vector<layout::Slice> slices;
  const std::int64_t length = 4'000'000'000;
  for (int i = 0; i < 16; ++i) slices.push_back({core::concat("t", i), i * length, length, 100});
  const layout::Layout huge(slices);
  Alone rank("scalecom", layout_of({{1000, 10}}));
  try {
    // Nobody looks at the gradient before there is room for its memory.
    rank.method->reduce({rank.gradient.data(), huge.elements(), core::DType::kFloat32, kDevice},
                        huge, *rank.end, rank.stream);
    FAIL() << "a quarter of a terabyte was found";
  } catch (const core::DeviceError& error) {
    const std::string what = error.what();
    EXPECT_NE(what.find("elements needs 2"), std::string::npos) << what;
    EXPECT_NE(what.find("MiB are free"), std::string::npos) << what;
  }
  EXPECT_TRUE(rank.method->memories().empty()) << "nothing is left behind";
  rank.fill(std::vector<float>(1000, 1.0F));
  EXPECT_NO_THROW(rank.reduce());
}

}  // namespace
}  // namespace scalecom::methods
