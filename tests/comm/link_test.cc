#include "scalecom/comm/link.h"

#include <gtest/gtest.h>

#include <array>
#include <set>
#include <thread>

#include "scalecom/comm/inproc/inproc.h"
#include "scalecom/core/error.h"

namespace scalecom::comm {
namespace {

/// The least that the MPI standard promises.
constexpr std::int64_t kLargest = 32767;

TEST(TagsTest, NoTwoMessagesHaveTheSame) {
  constexpr int kThreads = 5;
  std::set<int> tags;
  std::size_t messages = 0;
  for (const std::int64_t context : {0, 1, 2, 63}) {
    const Tags of_group(kThreads, context, kLargest);
    for (int from = 0; from < kThreads; ++from) {
      for (int to = 0; to < kThreads; ++to) {
        for (int call = 0; call <= Tags::kMessageBetweenTwo; ++call) {
          tags.insert(of_group.of({0, from}, {1, to}, call));
          ++messages;
        }
      }
    }
  }
  EXPECT_EQ(tags.size(), messages);
  EXPECT_GE(*tags.begin(), 0);
  EXPECT_LE(*tags.rbegin(), kLargest);
}

TEST(TagsTest, ASendIsMetByAReceive) {
  EXPECT_EQ(Tags::code_of(Fabric::Call::kSend), Tags::code_of(Fabric::Call::kReceive));
  EXPECT_NE(Tags::code_of(Fabric::Call::kSend), Tags::code_of(Fabric::Call::kSplit));
}

TEST(TagsTest, MoreGroupsThanFitAreRefused) {
  EXPECT_NO_THROW(Tags(5, 63, kLargest));
  EXPECT_THROW(Tags(5, 64, kLargest), core::UsageError);
  EXPECT_NO_THROW(Tags(1, 4095, kLargest));
  EXPECT_THROW(Tags(1, 4096, kLargest), core::UsageError);
}

// Ranks that have been in different numbers of groups: none of a new one has had its number.
TEST(LinkTest, AGroupGetsANumberThatIsNewToAllOfIt) {
  auto fabrics = inproc::make_fabrics(3);
  std::array<std::int64_t, 3> next{5, 1, 2};
  std::array<std::array<std::int64_t, 2>, 3> contexts{};
  const auto agree = [&](std::size_t rank, std::size_t round, const std::vector<int>& members) {
    const Fabric::Operation operation{Fabric::Call::kSplit, std::chrono::seconds(20),
                                      Fabric::Clock::now() + std::chrono::seconds(20)};
    contexts[rank][round] = agree_on_context(*fabrics[rank], members, next[rank], operation);
  };
  {
    std::vector<std::jthread> threads;
    for (std::size_t rank = 0; rank < 3; ++rank) {
      threads.emplace_back([&, rank] {
        agree(rank, 0, rank < 2 ? std::vector<int>{0, 1} : std::vector<int>{2});
        agree(rank, 1, rank > 0 ? std::vector<int>{1, 2} : std::vector<int>{0});
      });
    }
  }
  EXPECT_EQ(contexts[0], (std::array<std::int64_t, 2>{5, 6}));
  EXPECT_EQ(contexts[1], (std::array<std::int64_t, 2>{5, 6}));
  EXPECT_EQ(contexts[2], (std::array<std::int64_t, 2>{2, 6}));
  EXPECT_EQ(next, (std::array<std::int64_t, 3>{7, 7, 7}));
}

}  // namespace
}  // namespace scalecom::comm
