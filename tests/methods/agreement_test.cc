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
// ThreadSanitizer calls it before it can look at anything.
extern "C" __attribute__((no_sanitize("thread"))) void* mmap(void* address, size_t length,
                                                             int protection, int flags, int file,
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

/// Of arrays that are mapped, PowerSGD's factors and the shares of groups among them; of whole
/// pages, as ThreadSanitizer, which does not see them mapped, forgets no part of a page when they
/// are unmapped, and took two threads for racing that had the same page one after the other.
layout::Layout large_model() {
  const std::int64_t side = 66 * 4096;
  return layout::Layout(
      {{"v", 0, 3 * side, 10, {3, side}}, {"x", 3 * side, 3 * side, 10, {side, 3}}});
}

/// Two worlds that have done the same: the second is not told what the first has to refuse.
struct Twins {
  explicit Twins(const std::string& spec) : tried(kRanks, spec), untouched(kRanks, spec) {}

  std::vector<float> numbers(std::int64_t count) {
    std::vector<float> all(static_cast<std::size_t>(count));
    for (float& value : all) value = static_cast<float>(random() % 65536) - 32768.0F;
    return all;
  }
  void reduce(const layout::Layout& layout) {
    Gradients one;
    for (int rank = 0; rank < kRanks; ++rank) one.push_back(numbers(layout.elements()));
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
  const layout::Layout large = large_model();
  // After which the communicators of groups have all the room that they need for themselves.
  const layout::Layout larger({{"y", 0, large.elements(), 1, {large.elements()}}});
  const auto bring_large = [&](int) -> const auto& {
    return large;
  };
  const Gradients gradients(kRanks,
                            std::vector<float>(static_cast<std::size_t>(large.elements()), 1.0F));
  int tries = 0;
  for (;; ++tries) {
    Twins twins(GetParam());
    if (GetParam().find("groups") != std::string::npos) twins.reduce(larger);
    twins.reduce(usual);
    twins.reduce(usual);
    const std::vector<std::string> words = refusals(twins.tried, gradients, bring_large, tries);
    if (words.front().empty()) break;  // there was room for all of it
    expect_refused_alike(words, "bad_alloc");
    twins.expect_equal();
    twins.undo();
    twins.expect_equal();
    twins.reduce(usual);
    if (tries == 1) {
      twins.reduce(large);
    } else {
      twins.reduce(matrix("v", 40, 60, 20));  // of other sizes than the one that was refused
    }
    twins.expect_equal();
    ASSERT_LT(tries, 30);
  }
  EXPECT_GT(tries, 0) << "there are no large arrays";
}

INSTANTIATE_TEST_SUITE_P(Methods, Agreement,
                         ::testing::Values("scalecom,beta=0.5", "scalecom,select=exact",
                                           "scalecom,leaders=sharded", "weighted", "topk", "gtopk",
                                           "dgc,momentum=0.5", "adacomp", "powersgd",
                                           "powersgd,warm_start=off", "sketched_sgd,rows=1", "half",
                                           "scalecom,values=bf16", "scalecom,groups=2",
                                           "scalecom,groups=4", "scalecom,warmup=9",
                                           "topk,warmup=9", "powersgd,warmup=9",
                                           "scalecom,groups=2,warmup=9"));

class SixteenBits : public ::testing::TestWithParam<std::string> {};

// Whose sums are of 32, for which there has to be room too.
TEST_P(SixteenBits, NeedRoomThatAllRanksHearOf) {
  const layout::Layout layout = large_model();
  const auto refused = [&](std::int64_t mappings) {
    World world(kRanks, GetParam());
    std::vector<std::string> all(kRanks);
    world.run([&](int rank) {
      std::vector<std::uint16_t> mine(static_cast<std::size_t>(layout.elements()), 0x3f80);  // 1
      world.end(rank).set_deadline(std::chrono::seconds(20));
      if (rank == 1) mappings_left = mappings;
      try {
        world.reduce_at(rank, {mine.data(), layout.elements(), core::DType::kBFloat16, {}}, layout);
      } catch (const core::Error& error) {
        all[static_cast<std::size_t>(rank)] = error.what();
      }
      mappings_left = kPlenty;
    });
    return all;
  };
  int tries = 0;
  for (;; ++tries) {
    const std::vector<std::string> words = refused(tries);
    if (words.front().empty()) break;
    expect_refused_alike(words, "bad_alloc");
    ASSERT_LT(tries, 30);
  }
  EXPECT_GT(tries, 0) << "there are no large arrays";
}

INSTANTIATE_TEST_SUITE_P(Methods, SixteenBits,
                         ::testing::Values("dense", "half,values=bf16", "scalecom", "topk",
                                           "powersgd", "scalecom,warmup=9", "powersgd,warmup=9"));

class WarmUp : public ::testing::TestWithParam<std::string> {};

// Who has no room for what comes after it learns that with the first step, as all ranks do.
TEST_P(WarmUp, EndsWithTheRoomOfItsFirstStep) {
  const layout::Layout layout = large_model();
  Twins twins(GetParam() + ",warmup=3");
  for (int step = 0; step < 3; ++step) {
    twins.reduce(layout);
    for (const Copies& memories : state_of(twins.tried)) EXPECT_TRUE(memories.empty()) << step;
  }
  const Gradients gradients(kRanks, twins.numbers(layout.elements()));
  const auto bring = [&](int) -> const auto& {
    return layout;
  };
  for (const std::string& words : refusals(twins.tried, gradients, bring, 0)) EXPECT_EQ(words, "");
  EXPECT_EQ(refusals(twins.untouched, gradients, bring).front(), "");
  EXPECT_FALSE(state_of(twins.tried).front().empty());
  twins.expect_equal();
  twins.undo();
  twins.expect_equal();
  twins.reduce(layout);
}

// What an earlier step left goes out with the first of its steps that sends anything, or after it.
TEST_P(WarmUp, MayBeginLater) {
  const layout::Layout layout = matrix("w", 40, 60, 10);
  World world(kRanks, GetParam());
  std::mt19937 random(4);
  Gradients gradients = testing::normal(kRanks, 2400, random);
  world.reduce(gradients, layout);
  const std::vector<Copies> left = state_of(world);
  World expected(kRanks, GetParam());
  for (int rank = 0; rank < kRanks; ++rank) {
    world.method(rank).configure("warmup=3");
    Memories memories;
    for (const auto& [name, values] : left[static_cast<std::size_t>(rank)]) {
      core::AlignedArray<float> copy(static_cast<std::int64_t>(values.size()));
      std::copy(values.begin(), values.end(), copy.begin());
      memories.emplace(name, std::move(copy));
    }
    expected.method(rank).restore(3, std::move(memories));
  }
  for (int step = 1; step < 3; ++step) {
    gradients.assign(kRanks, std::vector<float>(2400, std::numeric_limits<float>::quiet_NaN()));
    world.reduce(gradients, layout);
    EXPECT_EQ(state_of(world), left) << "nothing was sent";
  }
  gradients.assign(kRanks, std::vector<float>(2400, 0.0F));
  Gradients others = gradients;
  world.reduce(gradients, layout);
  expected.reduce(others, layout);
  EXPECT_TRUE(same_bits(gradients[0], others[0]));
  EXPECT_EQ(state_of(world), state_of(expected));
}

TEST_P(WarmUp, RefusesAnotherModelsMemoryEverywhere) {
  const layout::Layout layout = matrix("w", 40, 60, 10);
  World world(kRanks, GetParam() + ",warmup=3");
  Memories wrong;
  wrong.emplace("w", core::AlignedArray<float>(7));
  world.method(1).restore(0, std::move(wrong));
  const Gradients gradients(kRanks, std::vector<float>(2400, 1.0F));
  expect_refused_alike(refusals(
                           world, gradients, [&](int) -> const auto& { return layout; }),
                       "another model");
}

INSTANTIATE_TEST_SUITE_P(Methods, WarmUp,
                         ::testing::Values("scalecom", "scalecom,leaders=sharded", "weighted",
                                           "topk", "gtopk", "powersgd", "powersgd,warm_start=off"));

}  // namespace
}  // namespace scalecom::methods
