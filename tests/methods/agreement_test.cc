// What the ranks cannot agree on, or one of them has no room for, leaves every method as it was.

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <limits>
#include <map>

#include "scalecom/core/error.h"
#include "scalecom/core/text.h"
#include "tests/methods/ranks.h"

namespace {

// How many more large arrays this thread gets.
thread_local std::int64_t mappings_left = std::numeric_limits<std::int64_t>::max();

}  // namespace

// In place of the system's, for this program: arrays of a mebibyte and more come from here.
extern "C" void* mmap(void* address, size_t length, int protection, int flags, int file,
                      off_t offset) noexcept {
  if (--mappings_left < 0) {
    errno = ENOMEM;
    return MAP_FAILED;
  }
  return reinterpret_cast<void*>(
      syscall(SYS_mmap, address, length, protection, flags, file, offset));
}

namespace scalecom::methods {
namespace {

using testing::Gradients;
using testing::layout_of;
using testing::same_bits;
using testing::World;

constexpr int kRanks = 4;
constexpr std::int64_t kPlenty = std::numeric_limits<std::int64_t>::max();

using Copies = std::map<std::string, std::vector<float>>;

std::vector<Copies> state_of(World& world) {
  std::vector<Copies> all(kRanks);
  for (int rank = 0; rank < kRanks; ++rank) {
    for (const NamedMemory& memory : world.method(rank).memories()) {
      all[static_cast<std::size_t>(rank)][memory.name].assign(memory.values.begin(),
                                                              memory.values.end());
    }
  }
  return all;
}

/// What each rank's reduction was refused with, "" where it was not. `layout(rank)` is what a rank
/// brings, and rank 1 gets no more than `mappings` large arrays.
std::vector<std::string> refusals(World& world, const Gradients& gradients,
                                  const std::function<const layout::Layout&(int)>& layout,
                                  std::int64_t mappings = kPlenty) {
  std::vector<std::string> all(kRanks);
  world.run([&](int rank) {
    std::vector<float> mine = gradients[static_cast<std::size_t>(rank)];
    mine.resize(static_cast<std::size_t>(layout(rank).elements()), 1.0F);
    world.end(rank).set_deadline(std::chrono::seconds(20));
    if (rank == 1) mappings_left = mappings;
    try {
      world.reduce_at(rank, core::Buffer::of(mine.data(), layout(rank).elements()), layout(rank));
    } catch (const core::Error& error) {
      all[static_cast<std::size_t>(rank)] = error.what();
    }
    mappings_left = kPlenty;
  });
  return all;
}

void expect_refused_alike(const std::vector<std::string>& words, const std::string& part) {
  for (const std::string& one : words) {
    EXPECT_EQ(one, words.front());
    EXPECT_NE(one.find(part), std::string::npos) << "'" << one << "'";
  }
}

layout::Layout matrix(const std::string& name, std::int64_t rows, std::int64_t columns,
                      double rate) {
  return layout::Layout({{name, 0, rows * columns, rate, {rows, columns}}});
}

/// Two worlds that have done the same: the second is not told what the first has to refuse.
struct Twins {
  explicit Twins(const std::string& spec) : tried(kRanks, spec), untouched(kRanks, spec) {}

  void reduce(const layout::Layout& layout) {
    Gradients one(kRanks, std::vector<float>(static_cast<std::size_t>(layout.elements())));
    for (auto& gradient : one) {
      for (float& value : gradient) value = static_cast<float>(random() % 65536) - 32768.0F;
    }
    Gradients other = one;
    tried.reduce(one, layout);
    untouched.reduce(other, layout);
    for (std::size_t rank = 0; rank < kRanks; ++rank)
      EXPECT_TRUE(same_bits(one[rank], other[rank]));
  }
  void undo() {
    for (int rank = 0; rank < kRanks; ++rank) {
      tried.method(rank).undo();
      untouched.method(rank).undo();
    }
  }
  void expect_equal() {
    EXPECT_EQ(state_of(tried), state_of(untouched));
    for (int rank = 0; rank < kRanks; ++rank) {
      EXPECT_EQ(tried.method(rank).steps(), untouched.method(rank).steps());
    }
  }

  World tried;
  World untouched;
  std::minstd_rand random{11};
};

class Agreement : public ::testing::TestWithParam<std::string> {};

TEST_P(Agreement, ThatFailsChangesNothing) {
  const layout::Layout usual = matrix("w", 40, 60, 10);
  const layout::Layout dense = matrix("w", 40, 60, 1);
  const layout::Layout wide = matrix("w", 60, 40, 10);
  const layout::Layout high = matrix("w", 80, 30, 10);
  Twins twins(GetParam());
  twins.reduce(usual);
  twins.reduce(dense);  // in which what is remembered may go out, and still come back
  const Gradients gradients(kRanks, std::vector<float>(2400, 1.0F));
  expect_refused_alike(
      refusals(
          twins.tried, gradients, [&](int rank) -> const auto& { return rank == 2 ? wide : high; }),
      "not about to do the same");
  twins.expect_equal();
  twins.undo();
  twins.expect_equal();
  twins.reduce(usual);
  twins.expect_equal();
}

// At whichever array one rank's room ends, no rank has begun, nor kept what it had made.
TEST_P(Agreement, ThatOneRankHasNoRoomForChangesNothing) {
  const layout::Layout usual = matrix("w", 40, 60, 10);
  // So that PowerSGD's factors are large, too.
  const std::int64_t side = 270'000;
  const layout::Layout large(
      {{"v", 0, 5 * side, 10, {5, side}}, {"x", 5 * side, 5 * side, 10, {side, 5}}});
  // After which communicators have all the room that they need for themselves.
  const layout::Layout larger({{"y", 0, 10 * side, 1, {10 * side}}});
  const auto bring_large = [&](int) -> const auto& {
    return large;
  };
  const Gradients gradients(kRanks, std::vector<float>(10 * side, 1.0F));
  int tries = 0;
  for (;; ++tries) {
    Twins twins(GetParam());
    twins.reduce(larger);
    twins.reduce(usual);
    twins.reduce(usual);
    const std::vector<std::string> words = refusals(twins.tried, gradients, bring_large, tries);
    if (words.front().empty()) break;  // there was room for all of it
    expect_refused_alike(words, "bad_alloc");
    twins.expect_equal();
    twins.undo();
    twins.expect_equal();
    twins.reduce(usual);
    twins.reduce(large);
    twins.expect_equal();
    ASSERT_LT(tries, 30);
  }
  EXPECT_GT(tries, 1) << "of the large arrays";
}

INSTANTIATE_TEST_SUITE_P(Methods, Agreement,
                         ::testing::Values("scalecom,beta=0.5", "scalecom,select=exact",
                                           "scalecom,leaders=sharded", "weighted", "topk", "gtopk",
                                           "dgc,momentum=0.5", "adacomp", "powersgd",
                                           "powersgd,warm_start=off", "sketched_sgd,rows=1",
                                           "scalecom,groups=2", "scalecom,groups=4"));

}  // namespace
}  // namespace scalecom::methods
