#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <thread>
#include <tuple>

#include "scalecom/core/error.h"
#include "scalecom/core/text.h"
#include "tests/comm/world.h"

/// A rank that is not there when it should be, in every call and on every backend.
namespace scalecom::comm {
namespace {

using std::chrono::milliseconds;
using testing::World;
using Clock = std::chrono::steady_clock;

constexpr milliseconds kDeadline{200};
/// Far more than the deadline, even on a busy machine, and far less than a hang.
constexpr std::chrono::seconds kNoHang{20};

struct Attempt {
  const char* name;
  void (*call)(Communicator& comm);
};

std::ostream& operator<<(std::ostream& out, const Attempt& attempt) {
  return out << attempt.name;
}

std::vector<std::byte> some_bytes(Communicator& comm) {
  return std::vector<std::byte>(static_cast<std::size_t>(8 * comm.size()));
}

const std::vector<Attempt> kAttempts = {
    // From the rank that is late; a root need not wait for anybody.
    {"broadcast",
     [](Communicator& comm) {
       auto data = some_bytes(comm);
       comm.broadcast(data, comm.size() - 1);
     }},
    {"all_reduce",
     [](Communicator& comm) {
       std::vector<float> data(100);
       comm.all_reduce(data);
     }},
    {"reduce_scatter",
     [](Communicator& comm) {
       std::vector<float> data(100);
       comm.reduce_scatter(data);
     }},
    {"all_gather",
     [](Communicator& comm) {
       auto data = some_bytes(comm);
       comm.all_gather(std::span(data).first(8), data);
     }},
    {"all_to_all",
     [](Communicator& comm) {
       const auto out = some_bytes(comm);
       auto in = some_bytes(comm);
       const std::vector<std::int64_t> sizes(static_cast<std::size_t>(comm.size()), 8);
       comm.all_to_all(out, sizes, in, sizes);
     }},
    {"receive",
     [](Communicator& comm) {
       auto data = some_bytes(comm);
       comm.receive(data, comm.size() - 1);
     }},
    {"barrier", [](Communicator& comm) { comm.barrier(); }},
    {"split", [](Communicator& comm) { std::ignore = comm.split(0, 0); }},
};

std::string error_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const core::PeerError& error) {
    return error.what();
  }
  return "no PeerError";
}

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

class LatePeerTest : public ::testing::TestWithParam<std::tuple<World, Attempt>> {
 protected:
  void SetUp() override {
    const auto why = testing::why_skipped(std::get<0>(GetParam()));
    if (!why.empty()) GTEST_SKIP() << why;
  }
};

INSTANTIATE_TEST_SUITE_P(, LatePeerTest,
                         ::testing::Combine(::testing::ValuesIn(testing::worlds({2, 8}, {2, 8})),
                                            ::testing::ValuesIn(kAttempts)),
                         [](const auto& info) {
                           return testing::name(std::get<0>(info.param)) + "_" +
                                  std::get<1>(info.param).name;
                         });

TEST_P(LatePeerTest, IsNamedAndNobodyHangs) {
  const auto& [world, attempt] = GetParam();
  const bool is_nccl = testing::is_nccl(world);
  // NCCL does not know who it is.
  const std::string missing = is_nccl ? "NCCL" : "rank " + std::to_string(world.size - 1);
  const std::string operation = core::concat("[", attempt.name, "]");
  // Ranks of this process that are at work: who leaves is missed before the deadline.
  std::atomic<int> at_work = 0;
  testing::run(world, [&, call = attempt.call](Communicator& comm) {
    ++at_work;
    comm.barrier();
    comm.set_deadline(kDeadline);
    if (comm.rank() == comm.size() - 1) {
      while (at_work > 1) std::this_thread::sleep_for(milliseconds(5));
      // Other processes are to miss it, not to see it leave.
      if (is_nccl) std::this_thread::sleep_for(5 * kDeadline);
      return;
    }
    const auto begin = Clock::now();
    const std::string error = error_of([&] { call(comm); });
    EXPECT_TRUE(has(error, operation)) << error;
    EXPECT_TRUE(has(error, "deadline of 200 ms passed")) << error;
    EXPECT_TRUE(has(error, missing)) << error;
    EXPECT_TRUE(has(error, "can no longer be used")) << error;

    const std::string later = error_of([&] { comm.barrier(); });
    EXPECT_TRUE(has(later, "[barrier]")) << later;
    EXPECT_TRUE(has(later, "can no longer be used")) << later;
    EXPECT_TRUE(has(later, missing)) << later;
    EXPECT_LT(Clock::now() - begin, kNoHang);
    --at_work;
  });
}

class DivergedTest : public ::testing::TestWithParam<World> {
 protected:
  void SetUp() override {
    if (const auto why = testing::why_skipped(GetParam()); !why.empty()) GTEST_SKIP() << why;
  }
};

INSTANTIATE_TEST_SUITE_P(, DivergedTest, ::testing::ValuesIn(testing::worlds({2, 3, 8}, {2, 3, 8})),
                         [](const auto& info) { return testing::name(info.param); });

TEST_P(DivergedTest, DifferentCallsAreNamed) {
  if (testing::is_nccl(GetParam())) GTEST_SKIP() << "NCCL does not compare calls";
  testing::run(GetParam(), [](Communicator& comm) {
    comm.barrier();
    // Over MPI it comes out at the deadline, by which the other's messages must be there.
    comm.set_deadline(std::chrono::seconds(1));
    std::vector<float> floats(static_cast<std::size_t>(comm.size()));
    const std::string error = error_of([&] {
      if (comm.rank() == 0) {
        comm.barrier();
      } else {
        comm.all_reduce(floats);
      }
    });
    EXPECT_TRUE(has(error, "barrier")) << error;
    EXPECT_TRUE(has(error, "all_reduce")) << error;
    EXPECT_TRUE(has(error, "can no longer be used")) << error;
  });
}

TEST_P(DivergedTest, MessageOfAnotherSizeIsRefused) {
  if (testing::is_nccl(GetParam())) GTEST_SKIP() << "NCCL does not compare calls";
  for (const std::size_t sent : {4, 12}) {
    testing::run(GetParam(), [&](Communicator& comm) {
      std::vector<std::byte> data(comm.rank() == 0 ? sent : 8);
      // Whether the sender is told depends on the engine.
      if (comm.rank() == 0) std::ignore = error_of([&] { comm.send(data, 1); });
      if (comm.rank() != 1) return;
      const std::string error = error_of([&] { comm.receive(data, 0); });
      EXPECT_TRUE(has(error, "[receive] rank 1 expects 8 bytes from rank 0")) << error;
    });
  }
}

TEST_P(DivergedTest, OtherCommunicatorsStillWork) {
  const World world = GetParam();
  testing::run(world, [](Communicator& comm) {
    std::vector<float> ones(100, 1.0F);
    comm.all_reduce(ones);
    EXPECT_EQ(ones[0], static_cast<float>(comm.size()));
  });
}

}  // namespace
}  // namespace scalecom::comm

int main(int argc, char** argv) {
  using namespace scalecom::comm::testing;
  return run_all_tests(argc, argv, Ending::kEndJob);
}
