#include "scalecom/comm/together.h"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <string>

#include "scalecom/comm/inproc/inproc.h"
#include "scalecom/core/error.h"

namespace scalecom::comm {
namespace {

TEST(MeanOverRanks, IsOfAllAndTheSameForAll) {
  inproc::run(4, [](Communicator& c) { EXPECT_EQ(mean_over_ranks(c, c.rank() * c.rank()), 3.5); });
}

TEST(TogetherTest, ReturnsWhereAllSucceed) {
  std::atomic<int> runs{0};
  inproc::run(4, [&](Communicator& c) { together(c, [&] { ++runs; }); });
  EXPECT_EQ(runs, 4);
}

template <typename Thrown, typename Caught>
int ranks_that_catch(int thrower) {
  std::atomic<int> caught{0};
  inproc::run(4, [&](Communicator& c) {
    try {
      together(c, [&] {
        if (c.rank() >= thrower) throw Thrown("rank " + std::to_string(c.rank()));
      });
    } catch (const Caught& error) {
      if (error.what() == "rank " + std::to_string(thrower)) ++caught;
    }
    c.barrier();  // the communicator is as good as before
  });
  return caught;
}

TEST(TogetherTest, EveryRankThrowsTheErrorOfTheLowestByItsType) {
  EXPECT_EQ((ranks_that_catch<core::UsageError, core::UsageError>(2)), 4);
  EXPECT_EQ((ranks_that_catch<core::IoError, core::IoError>(0)), 4);
  EXPECT_EQ((ranks_that_catch<core::CheckError, core::CheckError>(3)), 4);
  EXPECT_EQ((ranks_that_catch<core::DeviceError, core::DeviceError>(2)), 4);
  EXPECT_EQ((ranks_that_catch<std::runtime_error, core::Error>(1)), 4);
}

// What another program, or a damaged one, may send in the place of an outcome.
struct MadeUp {
  std::int32_t kind;
  std::array<char, 1020> message;
};

std::string what_a_made_up_outcome_throws(const MadeUp& made_up) {
  std::string what;
  inproc::run(2, [&](Communicator& c) {
    if (c.rank() == 1) {
      gather(c, made_up);
      return;
    }
    try {
      together(c, [] {});
    } catch (const core::Error& error) {
      what = error.what();
    }
  });
  return what;
}

TEST(TogetherTest, APeersMessageNeedNotEnd) {
  for (const std::int32_t kind : {1, 5}) {
    MadeUp endless{kind, {}};
    endless.message.fill('x');
    EXPECT_EQ(what_a_made_up_outcome_throws(endless), std::string(1020, 'x'));
  }
}

TEST(TogetherTest, AnUnknownOutcomeIsNoSuccess) {
  for (const std::int32_t kind : {-1, 6, 1 << 30}) {
    EXPECT_EQ(what_a_made_up_outcome_throws({kind, {"odd"}}), "odd") << kind;
  }
}

TEST(TogetherTest, LongMessagesAreCutNotRefused) {
  inproc::run(2, [&](Communicator& c) {
    try {
      together(c, [] { throw core::UsageError(std::string(5000, 'x')); });
      ADD_FAILURE();
    } catch (const core::UsageError& error) {
      EXPECT_GT(std::string(error.what()).size(), 500U);
    }
  });
}

TEST(TogetherTest, ALostPeerIsReportedAtOnce) {
  EXPECT_THROW(inproc::run(2,
                           [&](Communicator& c) {
                             together(c, [&] {
                               if (c.rank() == 1) throw core::PeerError("gone");
                             });
                           }),
               core::PeerError);
}

// What is known here says more than that the others are gone.
TEST(TogetherTest, AnErrorOfOnesOwnOutlivesTheOthers) {
  EXPECT_THROW(inproc::run(2,
                           [&](Communicator& c) {
                             if (c.rank() == 1) return;
                             try {
                               together(c, [] { throw core::IoError("the disk is full"); });
                             } catch (const core::IoError& error) {
                               EXPECT_STREQ(error.what(), "the disk is full");
                               throw;
                             }
                           }),
               core::IoError);
}

}  // namespace
}  // namespace scalecom::comm
