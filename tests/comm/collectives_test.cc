#include "scalecom/comm/collectives.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <limits>
#include <stdexcept>
#include <thread>
#include <tuple>

#include "scalecom/comm/inproc/inproc.h"
#include "scalecom/core/error.h"
#include "tests/comm/world.h"

namespace scalecom::comm {
namespace {

using testing::awkward_array;
using testing::byte_of;
using testing::bytes_of;
using testing::is_nccl;
using testing::is_sum;
using testing::same_bits;
using testing::World;

/// Lengths around nothing, and around shares that do not come out even.
std::vector<std::int64_t> lengths(int size) {
  std::vector<std::int64_t> lengths = {0, 1, 2, 3, 7, 13, 127, 1000, 4099};
  if (size <= 8) lengths.push_back(65537);
  return lengths;
}

std::vector<int> roots(int size) {
  return size <= 8 ? std::vector<int>{0, size / 2, size - 1} : std::vector<int>{size - 2};
}

class CollectivesTest : public ::testing::TestWithParam<World> {
 protected:
  void SetUp() override {
    if (const auto why = testing::why_skipped(GetParam()); !why.empty()) GTEST_SKIP() << why;
  }
  void run(const testing::Body& body) { testing::run(GetParam(), body, testing::Ranks::kKept); }
  int size() const { return GetParam().size; }
};

INSTANTIATE_TEST_SUITE_P(, CollectivesTest,
                         ::testing::ValuesIn(testing::worlds({1, 2, 3, 4, 5, 6, 7, 8, 128},
                                                             {1, 2, 3, 5, 8, 32})),
                         [](const auto& info) { return testing::name(info.param); });

TEST_P(CollectivesTest, KnowsItsPlace) {
  run([&](Communicator& comm) {
    EXPECT_EQ(comm.size(), size());
    EXPECT_GE(comm.rank(), 0);
    EXPECT_LT(comm.rank(), size());
    EXPECT_EQ(comm.deadline(), std::chrono::seconds(30));
    EXPECT_EQ(comm.counters(), Counters{});
  });
}

TEST_P(CollectivesTest, BroadcastReachesEverybody) {
  run([&](Communicator& comm) {
    for (const std::int64_t length : lengths(size())) {
      for (const int root : roots(size())) {
        auto data = bytes_of(comm.rank(), length);
        const Counters before = comm.counters();
        comm.broadcast(data, root);
        EXPECT_EQ(data, bytes_of(root, length)) << length << " from " << root;
        Counters expected;
        expected[Call::kBroadcast] = broadcast_traffic(length, size(), comm.rank(), root);
        EXPECT_EQ(comm.counters() - before, expected) << length << " from " << root;
      }
    }
  });
}

TEST_P(CollectivesTest, AllReduceSumsInTheOrderOfRanks) {
  run([&](Communicator& comm) {
    for (const std::int64_t length : lengths(size())) {
      auto data = awkward_array(comm.rank(), length);
      const Counters before = comm.counters();
      comm.all_reduce(data);
      EXPECT_TRUE(is_sum(GetParam(), data, length)) << length;
      Counters expected;
      expected[Call::kAllReduce] = all_reduce_traffic(length, size(), comm.rank());
      EXPECT_EQ(comm.counters() - before, expected) << length;
    }
  });
}

TEST_P(CollectivesTest, OrderOfTheSumIsSeen) {
  if (size() < 3) GTEST_SKIP() << "two numbers have one order";
  if (is_nccl(GetParam())) GTEST_SKIP() << "the order is NCCL's";
  run([&](Communicator& comm) {
    const float values[] = {1e8F, 1.0F, -1e8F};
    std::vector<float> data(50, comm.rank() < 3 ? values[comm.rank()] : 0.0F);
    comm.all_reduce(data);
    // (1e8 + 1) - 1e8: the 1 is lost on the way. Any other order keeps it.
    for (const float sum : data) EXPECT_EQ(sum, 0.0F);
  });
}

TEST_P(CollectivesTest, AllReduceOfLongArraysGoesInPieces) {
  const std::string& backend = GetParam().backend;
  if (size() > 4 && backend != "inproc") GTEST_SKIP() << "takes long";
  if (size() > 8) GTEST_SKIP() << "takes long";
  // Longer than a piece of every backend, for the sizes that are run.
  const bool large_pieces = backend == "mpi" || backend == "inproc-cuda";
  const std::int64_t length = large_pieces && size() == 2 ? 17'000'003 : 1'500'007;
  run([&](Communicator& comm) {
    auto data = awkward_array(comm.rank(), length);
    comm.all_reduce(data);
    EXPECT_TRUE(is_sum(GetParam(), data, length));
    EXPECT_EQ(comm.counters().total(), all_reduce_traffic(length, size(), comm.rank()));
  });
}

TEST_P(CollectivesTest, SameBitsAsThreadsOfOneProcess) {
  if (is_nccl(GetParam())) GTEST_SKIP() << "the order is NCCL's";
  const std::int64_t length = 10'007;
  std::vector<float> in_process;
  inproc::run(size(), [&](Communicator& comm) {
    auto data = awkward_array(comm.rank(), length);
    comm.all_reduce(data);
    if (comm.rank() == 0) in_process = data;
  });
  run([&](Communicator& comm) {
    auto data = awkward_array(comm.rank(), length);
    comm.all_reduce(data);
    EXPECT_TRUE(same_bits(data, in_process));
  });
}

TEST_P(CollectivesTest, EveryRankHasTheSameBits) {
  run([&](Communicator& comm) {
    for (const std::int64_t length : lengths(size())) {
      auto data = awkward_array(comm.rank(), length);
      comm.all_reduce(data);
      auto first = data;
      comm.broadcast(std::as_writable_bytes(std::span(first)), 0);
      EXPECT_TRUE(same_bits(data, first)) << length;
    }
  });
}

TEST_P(CollectivesTest, ReduceScatterSumsTheOwnShare) {
  run([&](Communicator& comm) {
    for (const std::int64_t length : lengths(size())) {
      auto data = awkward_array(comm.rank(), length);
      const Counters before = comm.counters();
      comm.reduce_scatter(data);
      const Share own = share(length, size(), comm.rank());
      const auto begin = static_cast<std::size_t>(own.begin);
      const auto count = static_cast<std::size_t>(own.size());
      EXPECT_TRUE(is_sum(GetParam(), std::span(data).subspan(begin, count), length, own.begin))
          << length;
      Counters expected;
      expected[Call::kReduceScatter] = reduce_scatter_traffic(length, size(), comm.rank());
      EXPECT_EQ(comm.counters() - before, expected) << length;
    }
  });
}

/// Unequal sizes, some of them 0.
std::int64_t uneven(int rank, std::int64_t length) {
  return rank % 3 == 1 ? 0 : length + rank;
}

TEST_P(CollectivesTest, AllGatherOfUnequalSizes) {
  run([&](Communicator& comm) {
    for (const std::int64_t length : lengths(size())) {
      std::vector<std::int64_t> sizes;
      std::vector<std::byte> expected;
      for (int r = 0; r < size(); ++r) {
        sizes.push_back(uneven(r, length));
        const auto theirs = bytes_of(r, sizes.back());
        expected.insert(expected.end(), theirs.begin(), theirs.end());
      }
      const auto mine = bytes_of(comm.rank(), uneven(comm.rank(), length));
      std::vector<std::byte> all(expected.size());
      const Counters before = comm.counters();
      comm.all_gather(mine, all, sizes);
      EXPECT_EQ(all, expected) << length;
      Counters traffic;
      traffic[Call::kAllGather] = all_gather_traffic(static_cast<std::int64_t>(mine.size()),
                                                     static_cast<std::int64_t>(all.size()), size());
      EXPECT_EQ(comm.counters() - before, traffic) << length;
    }
  });
}

TEST_P(CollectivesTest, AllGatherInPlaceOfEqualSizes) {
  run([&](Communicator& comm) {
    for (const std::int64_t length : lengths(size())) {
      const auto each = static_cast<std::size_t>(length);
      std::vector<std::byte> all(each * static_cast<std::size_t>(size()));
      const auto own = std::span(all).subspan(static_cast<std::size_t>(comm.rank()) * each, each);
      std::ranges::copy(bytes_of(comm.rank(), length), own.begin());
      comm.all_gather(own, all);
      for (int r = 0; r < size(); ++r) {
        const auto theirs = std::span(all).subspan(static_cast<std::size_t>(r) * each, each);
        EXPECT_TRUE(std::ranges::equal(theirs, bytes_of(r, length))) << length << " of rank " << r;
      }
    }
  });
}

TEST_P(CollectivesTest, MessagesLongerThanMpiSendsAtOnce) {
  if (size() != 2) GTEST_SKIP() << "needs much memory";
  const std::int64_t length = (std::int64_t{64} << 20) + 5;
  run([&](Communicator& comm) {
    std::vector<std::byte> all(static_cast<std::size_t>(2 * length));
    const auto half = std::span(all).subspan(static_cast<std::size_t>(comm.rank() * length),
                                             static_cast<std::size_t>(length));
    std::ranges::fill(half, std::byte(comm.rank() + 1));
    half.back() = std::byte(comm.rank() + 7);
    comm.all_gather(half, all);
    for (int r = 0; r < 2; ++r) {
      const auto theirs = std::span(all).subspan(static_cast<std::size_t>(r * length),
                                                 static_cast<std::size_t>(length));
      EXPECT_EQ(std::ranges::count(theirs, std::byte(r + 1)), length - 1);
      EXPECT_EQ(theirs.back(), std::byte(r + 7));
    }
  });
}

TEST_P(CollectivesTest, AllToAllOfUnequalSizes) {
  // What rank s gives rank d: its size, and its bytes.
  const auto bytes_between = [](int s, int d, std::int64_t length) {
    return (s + 2 * d) % 3 == 0 ? 0 : length + 3 * s + d;
  };
  run([&](Communicator& comm) {
    for (const std::int64_t length : {0, 1, 31, 2003}) {
      std::vector<std::byte> out;
      std::vector<std::byte> expected;
      std::vector<std::int64_t> out_sizes;
      std::vector<std::int64_t> in_sizes;
      for (int r = 0; r < size(); ++r) {
        out_sizes.push_back(bytes_between(comm.rank(), r, length));
        in_sizes.push_back(bytes_between(r, comm.rank(), length));
        const auto given = bytes_of(1000 * comm.rank() + r, out_sizes.back());
        const auto taken = bytes_of(1000 * r + comm.rank(), in_sizes.back());
        out.insert(out.end(), given.begin(), given.end());
        expected.insert(expected.end(), taken.begin(), taken.end());
      }
      std::vector<std::byte> in(expected.size());
      const Counters before = comm.counters();
      comm.all_to_all(out, out_sizes, in, in_sizes);
      EXPECT_EQ(in, expected) << length;
      const auto own = bytes_between(comm.rank(), comm.rank(), length);
      Counters traffic;
      traffic[Call::kAllToAll] = one_call(static_cast<std::int64_t>(out.size()) - own,
                                          static_cast<std::int64_t>(in.size()) - own);
      EXPECT_EQ(comm.counters() - before, traffic) << length;
    }
  });
}

TEST_P(CollectivesTest, MessagesBetweenTwoKeepTheirOrder) {
  if (size() == 1) GTEST_SKIP() << "nobody to send to";
  run([&](Communicator& comm) {
    const Counters before = comm.counters();
    Traffic expected;
    for (const std::int64_t length : {5, 0, 70'001, 1}) {
      // Round the ring, the first to send being rank 0.
      auto data = bytes_of(comm.rank() == 0 ? 42 : comm.rank(), length);
      const int next = (comm.rank() + 1) % size();
      const int last = (comm.rank() + size() - 1) % size();
      if (comm.rank() == 0) comm.send(data, next);
      comm.receive(data, last);
      if (comm.rank() != 0) comm.send(data, next);
      EXPECT_EQ(data, bytes_of(42, length));
      expected += one_call(length, 0) + one_call(0, length);
    }
    Counters traffic;
    traffic[Call::kSendReceive] = expected;
    EXPECT_EQ(comm.counters() - before, traffic);
  });
}

TEST_P(CollectivesTest, BarrierWaitsForEverybodyAndIsNotCounted) {
  run([&](Communicator& comm) {
    using Clock = std::chrono::steady_clock;
    const auto begin = Clock::now();
    comm.barrier();
    if (comm.rank() == size() - 1) std::this_thread::sleep_for(std::chrono::milliseconds(50));
    comm.barrier();
    EXPECT_GE(Clock::now() - begin, std::chrono::milliseconds(50));
    EXPECT_EQ(comm.counters(), Counters{});
  });
}

TEST_P(CollectivesTest, SplitMakesGroupsInTheOrderOfKeys) {
  run([&](Communicator& comm) {
    // The ranks of either color, in reverse.
    const int color = comm.rank() % 2;
    const auto group = comm.split(color, -comm.rank());
    const int members = (size() + 1 - color) / 2;
    ASSERT_EQ(group->size(), members);
    EXPECT_EQ(group->rank(), members - 1 - comm.rank() / 2);
    EXPECT_EQ(group->deadline(), comm.deadline());
    EXPECT_EQ(comm.counters(), Counters{});

    std::vector<float> data(100, static_cast<float>(comm.rank()));
    group->all_reduce(data);
    float sum = 0;
    for (int r = color; r < size(); r += 2) sum += static_cast<float>(r);
    for (const float value : data) EXPECT_EQ(value, sum);
    EXPECT_EQ(group->counters().total(), all_reduce_traffic(100, members, group->rank()));
    EXPECT_EQ(comm.counters(), Counters{});
  });
}

TEST_P(CollectivesTest, GroupsOfGroups) {
  run([&](Communicator& comm) {
    const auto same = comm.split(0, 0);
    EXPECT_EQ(same->rank(), comm.rank());
    const auto half = same->split(comm.rank() * 2 < size() ? 7 : -7, comm.rank());
    const auto quarter = half->split(half->rank() % 2, 0);
    const auto alone = quarter->split(quarter->rank(), 0);
    EXPECT_EQ(alone->size(), 1);
    // All of them at work, in turn.
    for (int round = 0; round < 3; ++round) {
      for (Communicator* group : {&comm, same.get(), half.get(), quarter.get(), alone.get()}) {
        std::vector<float> ones(17, 1.0F);
        group->all_reduce(ones);
        for (const float value : ones) EXPECT_EQ(value, static_cast<float>(group->size()));
        auto data = bytes_of(group->rank(), 33);
        group->broadcast(data, group->size() - 1);
        EXPECT_EQ(data, bytes_of(group->size() - 1, 33));
      }
    }
  });
}

TEST_P(CollectivesTest, ManyGroupsOneAfterTheOther) {
  run([&](Communicator& comm) {
    const int rounds = size() > 8 || is_nccl(GetParam()) ? 3 : 30;
    for (int round = 0; round < rounds; ++round) {
      const auto group = comm.split(comm.rank() % (round % 3 + 1), round);
      std::vector<float> ones(3, 1.0F);
      group->all_reduce(ones);
      EXPECT_EQ(ones[2], static_cast<float>(group->size()));
    }
  });
}

TEST_P(CollectivesTest, RandomCallsOneAfterTheOther) {
  run([&](Communicator& comm) {
    for (int round = 0; round < (size() > 8 ? 10 : 100); ++round) {
      const std::int64_t length = (round * 7919) % 1013;
      auto floats = awkward_array(comm.rank(), length);
      if (round % 2 == 0) {
        comm.all_reduce(floats);
        EXPECT_TRUE(is_sum(GetParam(), floats, length));
      } else {
        auto bytes = bytes_of(comm.rank(), length);
        comm.broadcast(bytes, round % size());
        EXPECT_EQ(bytes, bytes_of(round % size(), length));
      }
    }
  });
}

TEST_P(CollectivesTest, MistakesAreRefusedAndHarmNothing) {
  run([&](Communicator& comm) {
    const auto count = static_cast<std::size_t>(size());
    std::vector<std::byte> data(8);
    std::vector<std::byte> all(8 * count);
    std::vector<std::byte> other(8 * count);
    const std::vector<std::int64_t> eights(count, 8);
    std::vector<std::int64_t> negative = eights;
    negative.front() = -8;
    const std::vector<std::int64_t> too_many(count + 1, 8);
    const std::vector<std::int64_t> nines(count, 9);
    const std::vector<std::int64_t> huge(count, std::numeric_limits<std::int64_t>::max());

    EXPECT_THROW(comm.broadcast(data, -1), core::UsageError);
    EXPECT_THROW(comm.broadcast(data, size()), core::UsageError);
    EXPECT_THROW(comm.all_gather(data, all, negative), core::UsageError);
    EXPECT_THROW(comm.all_gather(data, all, too_many), core::UsageError);
    EXPECT_THROW(comm.all_gather(data, all, nines), core::UsageError);
    EXPECT_THROW(comm.all_gather(data, all, huge), core::UsageError);
    EXPECT_THROW(comm.all_gather(std::span(data).first(7), all, eights), core::UsageError);
    EXPECT_THROW(comm.all_gather(data, std::span(all).first(7), eights), core::UsageError);
    EXPECT_THROW(comm.all_to_all(all, eights, other, nines), core::UsageError);
    EXPECT_THROW(comm.all_to_all(all, too_many, other, eights), core::UsageError);
    EXPECT_THROW(comm.all_to_all(all, eights, all, eights), core::UsageError);
    if (size() > 1) {
      std::vector<std::int64_t> shifted = eights;  // all of them come to the same
      shifted[static_cast<std::size_t>(comm.rank())] -= 8;
      shifted[static_cast<std::size_t>((comm.rank() + 1) % size())] += 8;
      EXPECT_THROW(comm.all_to_all(all, eights, other, shifted), core::UsageError);
    }
    EXPECT_THROW(comm.send(data, comm.rank()), core::UsageError);
    EXPECT_THROW(comm.send(data, size()), core::UsageError);
    EXPECT_THROW(comm.receive(data, comm.rank()), core::UsageError);
    EXPECT_THROW(comm.receive(data, -1), core::UsageError);
    EXPECT_THROW(comm.set_deadline(std::chrono::milliseconds(0)), core::UsageError);
    EXPECT_EQ(comm.counters(), Counters{});

    comm.set_deadline(std::chrono::milliseconds::max());
    std::vector<float> ones(3, 1.0F);
    comm.all_reduce(ones);
    EXPECT_EQ(ones[0], static_cast<float>(size()));
  });
}

/// One rank alone, which can make no groups.
class NoGroups final : public Fabric {
 public:
  explicit NoGroups(std::function<void()> refuse) : refuse_(std::move(refuse)) {}

  int rank() const override { return 0; }
  int size() const override { return 1; }
  void exchange(std::span<const Outgoing>, std::span<const Incoming>, const Operation&) override {}
  void send(const Outgoing&, const Operation&) override {}
  void receive(const Incoming&, const Operation&) override {}
  std::unique_ptr<Fabric> group(const std::vector<int>&, const Operation&) override {
    refuse_();
    return nullptr;
  }
  std::int64_t piece_bytes(core::Device) const override { return kScratchBytes; }

 private:
  std::function<void()> refuse_;
};

TEST(CollectivesOverAFabricTest, AnEnginesRefusalHarmsNothing) {
  const auto comm = make_communicator(
      std::make_unique<NoGroups>([] { throw core::UsageError("no more groups"); }));
  for (int attempt = 0; attempt < 2; ++attempt) {
    EXPECT_THROW(std::ignore = comm->split(0, 0), core::UsageError);
  }
  comm->barrier();
}

TEST(CollectivesOverAFabricTest, AnyOtherFailureIsTheLast) {
  const auto comm = make_communicator(
      std::make_unique<NoGroups>([] { throw std::runtime_error("the engine is gone"); }));
  EXPECT_THROW(std::ignore = comm->split(0, 0), std::runtime_error);
  try {
    comm->barrier();
    ADD_FAILURE() << "nothing was thrown";
  } catch (const core::PeerError& error) {
    EXPECT_STREQ(error.what(),
                 "[barrier] this communicator can no longer be used, because of an earlier "
                 "failure: the engine is gone");
  }
}

}  // namespace
}  // namespace scalecom::comm

int main(int argc, char** argv) {
  return scalecom::comm::testing::run_all_tests(argc, argv);
}
