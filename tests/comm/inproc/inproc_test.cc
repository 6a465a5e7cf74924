#include "scalecom/comm/inproc/inproc.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <string>
#include <thread>

#include "scalecom/core/error.h"

namespace scalecom::comm::inproc {
namespace {

using std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;

/// Nobody should get near it: who waits this long was not told.
constexpr auto kLongDeadline = std::chrono::minutes(5);

std::string peer_error_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const core::PeerError& error) {
    return error.what();
  }
  return "no PeerError";
}

TEST(InprocTest, WorldsHaveOneRankOrMore) {
  EXPECT_THROW(make_world(0), core::UsageError);
  EXPECT_THROW(run(-1, [](Communicator&) {}), core::UsageError);
}

TEST(InprocTest, FirstErrorThatIsNotAboutPeersIsThrownAgain) {
  const auto begin = Clock::now();
  try {
    run(
        4,
        [](Communicator& comm) {
          if (comm.rank() >= 2) {
            throw std::invalid_argument("mistake of rank " + std::to_string(comm.rank()));
          }
          comm.barrier();
        },
        kLongDeadline);
    FAIL() << "nothing was thrown";
  } catch (const std::invalid_argument& error) {
    EXPECT_STREQ(error.what(), "mistake of rank 2");
  }
  EXPECT_LT(Clock::now() - begin, std::chrono::seconds(30));
}

TEST(InprocTest, ErrorAboutPeersIsThrownWhereThereIsNoOther) {
  EXPECT_THROW(run(3,
                   [](Communicator& comm) {
                     if (comm.rank() != 1) comm.barrier();
                   }),
               core::PeerError);
}

TEST(InprocTest, WhoLeftIsNamedAtOnce) {
  std::array<std::string, 3> errors;
  run(
      4,
      [&](Communicator& comm) {
        std::vector<std::byte> data(8);
        comm.barrier();
        switch (comm.rank()) {
          case 0:
            errors[0] = peer_error_of([&] { comm.barrier(); });
            break;
          case 1:
            errors[1] = peer_error_of([&] { comm.receive(data, 3); });
            break;
          case 2:
            errors[2] = peer_error_of([&] { comm.send(data, 3); });
            break;
          default:
            std::this_thread::sleep_for(milliseconds(50));
        }
      },
      kLongDeadline);
  for (const std::string& error : errors) {
    EXPECT_NE(error.find("rank 3 left"), std::string::npos) << error;
  }
}

// Where nobody is in a call of all ranks, and where they come to one afterwards.
TEST(InprocTest, WhoLeavesEarlyIsNamedToo) {
  const auto error_of = [](void (*call)(Communicator&), milliseconds stay, milliseconds before) {
    std::string error;
    run(
        2,
        [&](Communicator& comm) {
          std::this_thread::sleep_for(comm.rank() == 0 ? stay : before);
          if (comm.rank() == 1) error = peer_error_of([&] { call(comm); });
        },
        milliseconds(5000));
    return error;
  };
  const auto receive = [](Communicator& comm) {
    std::vector<std::byte> data(8);
    comm.receive(data, 0);
  };
  const auto barrier = [](Communicator& comm) { comm.barrier(); };
  for (const std::string& error : {error_of(receive, milliseconds(20), milliseconds(0)),
                                   error_of(receive, milliseconds(0), milliseconds(20)),
                                   error_of(barrier, milliseconds(0), milliseconds(20))}) {
    EXPECT_NE(error.find("rank 0 left"), std::string::npos) << error;
  }
}

TEST(InprocTest, LeavingAfterTheLastCallHarmsNobody) {
  for (int round = 0; round < 200; ++round) {
    run(
        5,
        [](Communicator& comm) {
          std::vector<float> ones(7, 1.0F);
          comm.all_reduce(ones);
          const auto group = comm.split(comm.rank() / 2, 0);
          std::vector<std::byte> data(3);
          group->broadcast(data, 0);
        },
        kLongDeadline);
  }
}

TEST(InprocTest, EveryRankGetsTheSameErrorForDifferentCalls) {
  std::array<std::string, 3> errors;
  run(
      3,
      [&](Communicator& comm) {
        std::vector<std::byte> data(3);
        errors[static_cast<std::size_t>(comm.rank())] = peer_error_of([&] {
          if (comm.rank() == 1) {
            comm.broadcast(data, 0);
          } else {
            comm.barrier();
          }
        });
      },
      kLongDeadline);
  EXPECT_EQ(errors[0],
            "[barrier] the ranks are in different calls: rank 0 in barrier, rank 1 in broadcast, "
            "rank 2 in barrier; this communicator can no longer be used");
  EXPECT_EQ(errors[1], errors[0]);
  EXPECT_EQ(errors[2], errors[0]);
}

TEST(InprocTest, EveryRankGetsTheSameErrorForDifferentSizes) {
  for (int wrong = 0; wrong < 3; ++wrong) {
    std::array<std::string, 3> errors;
    run(
        3,
        [&](Communicator& comm) {
          std::vector<float> data(comm.rank() == wrong ? 30 : 33);
          errors[static_cast<std::size_t>(comm.rank())] =
              peer_error_of([&] { comm.all_reduce(data); });
        },
        kLongDeadline);
    EXPECT_NE(errors[0].find("[all_reduce] rank "), std::string::npos) << errors[0];
    EXPECT_NE(errors[0].find("bytes from rank "), std::string::npos) << errors[0];
    EXPECT_EQ(errors[1], errors[0]);
    EXPECT_EQ(errors[2], errors[0]);
  }
}

// What lies there of the exchange before is not taken for a message of this one.
TEST(InprocTest, MessagesThatOneRankDoesNotKnowOfAreMissed) {
  const auto errors_of = [](std::int64_t known_by_0, std::int64_t known_by_1) {
    std::array<std::string, 2> errors;
    run(
        2,
        [&](Communicator& comm) {
          const auto gather = [&](std::int64_t of_1) {
            std::vector<std::byte> all(static_cast<std::size_t>(8 + of_1));
            const std::vector<std::int64_t> sizes{8, of_1};
            const auto own = comm.rank() == 0 ? 8 : static_cast<std::size_t>(of_1);
            const std::vector<std::byte> mine(own);
            comm.all_gather(mine, all, sizes);
          };
          gather(8);
          errors[static_cast<std::size_t>(comm.rank())] =
              peer_error_of([&] { gather(comm.rank() == 0 ? known_by_0 : known_by_1); });
        },
        kLongDeadline);
    EXPECT_EQ(errors[0], errors[1]);
    return errors[0];
  };
  const std::string missing = errors_of(8, 0);
  EXPECT_NE(missing.find("rank 0 expects 8 bytes from rank 1, which sends 0"), std::string::npos)
      << missing;
  const std::string unexpected = errors_of(0, 8);
  EXPECT_NE(unexpected.find("rank 0 expects 0 messages and is sent 1"), std::string::npos)
      << unexpected;
}

// A sender is woken when its message has been taken, not by the next one that comes to it.
TEST(InprocTest, MessagesOneWayWaitForNoneBack) {
  run(
      2,
      [](Communicator& comm) {
        std::vector<std::byte> data(8);
        for (int message = 0; message < 20; ++message) {
          if (comm.rank() == 0) {
            comm.send(data, 1);
          } else {
            comm.receive(data, 0);
          }
        }
      },
      milliseconds(2000));
}

TEST(InprocTest, BothGetTheSameErrorForAMessageOfAnotherSize) {
  std::array<std::string, 2> errors;
  run(
      2,
      [&](Communicator& comm) {
        std::vector<std::byte> data(comm.rank() == 0 ? 12 : 8);
        errors[static_cast<std::size_t>(comm.rank())] = peer_error_of([&] {
          if (comm.rank() == 0) {
            comm.send(data, 1);
          } else {
            comm.receive(data, 0);
          }
        });
      },
      kLongDeadline);
  EXPECT_EQ(errors[1],
            "[receive] rank 1 expects 8 bytes from rank 0, which sends 12; this communicator can "
            "no longer be used");
  EXPECT_EQ(errors[0], errors[1]);
}

TEST(InprocTest, MessageThatNobodyTakesHasADeadlineToo) {
  std::atomic<bool> over = false;
  run(
      2,
      [&](Communicator& comm) {
        std::vector<std::byte> data(8);
        if (comm.rank() == 0) {
          EXPECT_EQ(
              peer_error_of([&] { comm.send(data, 1); }),
              "[send] deadline of 100 ms passed; waiting for rank 1; this communicator can no "
              "longer be used");
          over = true;
        }
        while (!over) std::this_thread::sleep_for(milliseconds(1));
        // What was taken back is not received, and who comes late is told.
        if (comm.rank() == 1) {
          const std::string error = peer_error_of([&] { comm.receive(data, 0); });
          EXPECT_NE(error.find("[receive] this communicator can no longer be used"),
                    std::string::npos)
              << error;
        }
      },
      milliseconds(100));
}

TEST(InprocTest, FailureOfAGroupLeavesTheOthersAlone) {
  run(
      4,
      [&](Communicator& comm) {
        auto group = comm.split(comm.rank() / 2, 0);
        if (comm.rank() == 1) group.reset();
        if (comm.rank() == 0) {
          const std::string error = peer_error_of([&] { group->barrier(); });
          EXPECT_NE(error.find("[barrier] rank 1 left"), std::string::npos) << error;
        }
        if (comm.rank() >= 2) group->barrier();
        std::vector<float> ones(3, 1.0F);
        comm.all_reduce(ones);
        EXPECT_EQ(ones[0], 4.0F);
      },
      kLongDeadline);
}

}  // namespace
}  // namespace scalecom::comm::inproc
