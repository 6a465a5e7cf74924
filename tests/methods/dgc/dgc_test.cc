#include "scalecom/methods/dgc/dgc.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "scalecom/comm/inproc/inproc.h"
#include "scalecom/core/error.h"
#include "scalecom/methods/dgc/packed_sizes.h"
#include "tests/methods/plain_sparse.h"
#include "tests/methods/sparse/worlds.h"

namespace scalecom::methods {
namespace {

using testing::Gradients;
using testing::memory_of;
using testing::mixed_layout;
using testing::PlainDgc;
using testing::same_bits;
using testing::World;

// What a rank has sent: the entries of which nothing is left, of those that had something.
std::vector<std::int64_t> sent_by(World& world, int rank, const layout::Layout& layout,
                                  const std::vector<float>& before) {
  std::vector<std::int64_t> sent;
  for (const layout::Slice& slice : layout.slices()) {
    if (slice.dense() || slice.length == 0) continue;
    const std::vector<float> after = memory_of(world, rank, slice.name);
    for (std::int64_t i = 0; i < slice.length; ++i) {
      const std::int64_t place = slice.offset + i;
      if (after[static_cast<std::size_t>(i)] == 0 && before[static_cast<std::size_t>(place)] != 0) {
        sent.push_back(place);
      }
    }
  }
  return sent;
}

// Of each slice the largest, and about as many as its rate wants.
void expect_largest(const layout::Layout& layout, double most_rate,
                    const std::vector<std::int64_t>& sent, const std::vector<float>& before) {
  const std::set<std::int64_t> set(sent.begin(), sent.end());
  for (const layout::Slice& slice : layout.slices()) {
    if (slice.dense() || slice.length == 0) continue;
    const double rate = std::min(slice.rate, most_rate);
    const double wanted = std::max(1.0, std::floor(static_cast<double>(slice.length) / rate));
    double count = 0;
    float least = INFINITY;
    float most_kept = 0;
    for (std::int64_t i = slice.offset; i < slice.offset + slice.length; ++i) {
      const float magnitude = std::abs(before[static_cast<std::size_t>(i)]);
      if (set.contains(i)) {
        ++count;
        least = std::min(least, magnitude);
      } else {
        most_kept = std::max(most_kept, magnitude);
      }
    }
    EXPECT_GE(least, most_kept) << slice.name;
    EXPECT_GE(count, std::floor(0.8 * wanted)) << slice.name;
    EXPECT_LE(count, std::max(1.0, 1.3 * wanted)) << slice.name;
  }
}

struct Case {
  std::string spec;
  PlainDgc::Rules rules;
};

class DgcAgainstPlain : public ::testing::TestWithParam<Case> {};

TEST_P(DgcAgainstPlain, SameBits) {
  const layout::Layout layout = mixed_layout();
  std::mt19937 random(43);
  for (const int size : {1, 2, 3, 5}) {
    World world(size, GetParam().spec);
    PlainDgc plain(size, GetParam().rules, layout);
    for (int step = 0; step < 8; ++step) {
      Gradients gradients = testing::normal(size, layout.elements(), random);
      const Gradients before = plain.accumulate(gradients);
      world.reduce(gradients, layout);
      std::vector<std::vector<std::int64_t>> sets;
      for (int rank = 0; rank < size; ++rank) {
        const auto at = static_cast<std::size_t>(rank);
        sets.push_back(sent_by(world, rank, layout, before[at]));
        expect_largest(layout, 1e9, sets.back(), before[at]);
      }
      const std::vector<float> expected = plain.send(sets);
      for (int rank = 0; rank < size; ++rank) {
        const auto at = static_cast<std::size_t>(rank);
        ASSERT_TRUE(same_bits(gradients[at], expected)) << "size " << size << " step " << step;
        testing::expect_memories(world, rank, layout, plain.memories()[at]);
        testing::expect_memories(world, rank, layout, plain.velocities()[at], "/velocity");
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(EveryOption, DgcAgainstPlain,
                         ::testing::Values(Case{"dgc", {0.9F, false}},
                                           Case{"dgc,momentum=0", {0.0F, false}},
                                           Case{"dgc,nesterov=on,momentum=0.5", {0.5F, true}},
                                           Case{"dgc,clip=10", {0.9F, false, 10}},
                                           Case{"dgc,clip=1e9", {0.9F, false, 1e9}}),
                         [](const auto& info) {
                           std::string name = info.param.spec;
                           for (char& c : name)
                             c = std::isalnum(static_cast<unsigned char>(c)) != 0 ? c : '_';
                           return name;
                         });

// 4, 16, 64 and 256, a quarter of the warm-up each, then the tensor's own; never over that.
TEST(Dgc, TheRateRisesOverTheWarmUp) {
  const layout::Layout layout({{"w", 0, 200000, 1000}, {"x", 200000, 6400, 20}});
  World world(1, "dgc,warmup=8");
  std::mt19937 random(44);
  for (int step = 0; step < 10; ++step) {
    const double rate = step < 8 ? std::pow(4.0, step / 2 + 1) : 1000;
    Gradients gradients = testing::normal(1, layout.elements(), random);
    world.reduce(gradients, layout);
    const auto sent_in = [&](std::size_t begin, std::size_t end) {
      return static_cast<double>(std::count_if(
          gradients[0].begin() + static_cast<std::ptrdiff_t>(begin),
          gradients[0].begin() + static_cast<std::ptrdiff_t>(end), [](float x) { return x != 0; }));
    };
    EXPECT_GE(sent_in(0, 200000), 0.8 * std::floor(200000 / rate)) << step;
    EXPECT_LE(sent_in(0, 200000), 1.3 * std::floor(200000 / rate)) << step;
    EXPECT_LE(sent_in(200000, 206400), 1.3 * std::floor(6400 / std::min(rate, 20.0))) << step;
  }
}

// Clipped before it is accumulated, to clip / sqrt(n): the whole bucket, dense slices included.
TEST(Dgc, ClipsEveryRanksGradient) {
  const layout::Layout layout({{"w", 0, 100, 100}, {"b", 100, 2, 1}});
  World world(4, "dgc,clip=10,momentum=0");
  Gradients gradients(4, std::vector<float>(102, 0.0F));
  gradients[0][7] = 30;
  gradients[0][100] = 40;  // a norm of 50, and 10 / sqrt(4) is allowed
  gradients[1][7] = 3;
  gradients[1][101] = 4;
  world.reduce(gradients, layout);
  EXPECT_FLOAT_EQ(gradients[0][7], (3.0F + 3.0F) / 4);
  EXPECT_FLOAT_EQ(gradients[0][100], 4.0F / 4);
  EXPECT_FLOAT_EQ(gradients[0][101], 4.0F / 4);
}

// At a rate of 1 nothing waits, and what comes out is the momentum of the mean gradient.
TEST(Dgc, GivesDenseSlicesMomentumToo) {
  const layout::Layout layout({{"b", 0, 3, 1}});
  World world(2, "dgc,momentum=0.5,nesterov=on");
  EXPECT_TRUE(world.method(0).brings_momentum());
  EXPECT_FALSE(make("topk")->brings_momentum());
  float velocity = 0;
  for (int step = 0; step < 5; ++step) {
    const auto g = static_cast<float>(step * step - 3);
    Gradients gradients(2, std::vector<float>(3, 2 * g));
    gradients[1].assign(3, 0.0F);
    world.reduce(gradients, layout);
    velocity = 0.5F * (velocity + g);
    EXPECT_EQ(gradients[0], std::vector<float>(3, velocity + g));
    EXPECT_EQ(gradients[1], gradients[0]);
  }
}

TEST(Dgc, RefusesATensorThatIsNamedLikeAVelocity) {
  World world(2, "dgc");
  Gradients gradients(2, std::vector<float>(10, 1.0F));
  EXPECT_THROW(world.reduce(gradients, layout::Layout({{"w/velocity", 0, 10, 5}})),
               core::UsageError);
  EXPECT_EQ(world.method(0).steps(), 0);
}

// Room is made, and places are read, for as many entries as a peer says it sends.
TEST(Dgc, RefusesCountsThatCannotBe) {
  struct Sizes : dgc::PackedSizes {
    using PackedSizes::exchange_counts;
  };
  const std::vector<wire::Run> mine{{100, 3}, {57, 2}};
  for (const std::uint32_t count : {58U, 0xffffffffU}) {
    comm::inproc::run(2, [&](comm::Communicator& comm) {
      if (comm.rank() == 1) {
        const std::vector<std::uint32_t> made_up{100, count};
        std::vector<std::uint32_t> all(4);
        comm.all_gather(std::as_bytes(std::span(made_up)), std::as_writable_bytes(std::span(all)));
        return;
      }
      try {
        Sizes().exchange_counts(comm, mine);
        ADD_FAILURE() << "nothing was thrown";
      } catch (const core::PeerError& error) {
        EXPECT_EQ(error.what(), "[dgc] rank 1 says it sends " + std::to_string(count) +
                                    " entries of a tensor of 57");
      }
    });
  }
}

}  // namespace
}  // namespace scalecom::methods
