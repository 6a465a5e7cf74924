#include "scalecom/methods/sketched_sgd/sketched_sgd.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "scalecom/core/error.h"
#include "scalecom/kernels/sketch.h"
#include "tests/methods/shapes.h"

namespace scalecom::methods {
namespace {

using testing::copies_of;
using testing::Gradients;
using testing::layout_for;
using testing::same_bits;
using testing::small_model;
using testing::World;

// Where an element goes in a row, by division: the hash's lowest bit is the sign, the others the
// column.
struct PlainHash {
  PlainHash(std::uint64_t seed, std::int64_t row) : hash(seed, row) {}
  int sign(std::uint64_t x) const { return hash.at(x) % 2 == 0 ? 1 : -1; }
  std::size_t column(std::uint64_t x, std::size_t columns) const {
    return std::uint64_t{hash.at(x)} / 2 * columns / (std::uint64_t{1} << 30);
  }
  kernels::sketch::Hash hash;
};

std::vector<std::size_t> largest(const std::vector<float>& values, std::size_t keep) {
  std::vector<std::size_t> order(values.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return std::abs(values[a]) > std::abs(values[b]);
  });
  order.resize(keep);
  std::sort(order.begin(), order.end());
  return order;
}

// SketchedSGD stated again, as plainly as it can be: all ranks in one loop, over one vector.
class PlainSketchedSgd {
 public:
  PlainSketchedSgd(std::size_t ranks, std::size_t elements, std::size_t keep, float momentum)
      : keep_(keep),
        momentum_(momentum),
        u(ranks, std::vector<float>(elements, 0.0F)),
        v(ranks, std::vector<float>(elements, 0.0F)) {}

  std::vector<float> step(const Gradients& gradients) {
    constexpr std::int64_t kRows = 5;
    const std::size_t columns = 4 * keep_;
    const std::size_t elements = v[0].size();
    std::vector<std::vector<float>> table(kRows, std::vector<float>(columns, 0.0F));
    for (std::size_t r = 0; r < v.size(); ++r) {
      std::vector<std::vector<float>> own(kRows, std::vector<float>(columns, 0.0F));
      for (std::size_t i = 0; i < elements; ++i) {
        u[r][i] = gradients[r][i] + momentum_ * u[r][i];
        v[r][i] += u[r][i];
        for (std::int64_t row = 0; row < kRows; ++row) {
          const PlainHash hash(0, row);
          own[static_cast<std::size_t>(row)][hash.column(i, columns)] +=
              static_cast<float>(hash.sign(i)) * v[r][i];
        }
      }
      for (std::size_t row = 0; row < kRows; ++row) {
        for (std::size_t c = 0; c < columns; ++c) table[row][c] += own[row][c];
      }
    }
    std::vector<float> estimates;
    for (std::size_t i = 0; i < elements; ++i) {
      std::vector<float> counters;
      for (std::int64_t row = 0; row < kRows; ++row) {
        const PlainHash hash(0, row);
        counters.push_back(static_cast<float>(hash.sign(i)) *
                           table[static_cast<std::size_t>(row)][hash.column(i, columns)]);
      }
      std::sort(counters.begin(), counters.end());
      estimates.push_back(counters[2]);
    }
    const std::vector<std::size_t> candidates = largest(estimates, 4 * keep_);
    std::vector<float> sums;
    for (const std::size_t i : candidates) {
      float sum = v[0][i];
      for (std::size_t r = 1; r < v.size(); ++r) sum += v[r][i];
      sums.push_back(sum);
    }
    std::vector<float> mean(elements, 0.0F);
    for (const std::size_t kept : largest(sums, keep_)) {
      const std::size_t i = candidates[kept];
      mean[i] = sums[kept] * (1.0F / static_cast<float>(v.size()));
      for (std::size_t r = 0; r < v.size(); ++r) u[r][i] = v[r][i] = 0;
    }
    return mean;
  }

 private:
  std::size_t keep_;
  float momentum_;

 public:
  std::vector<std::vector<float>> u;
  std::vector<std::vector<float>> v;
};

// Positions are numbers of 32 bits over the whole bucket.
TEST(SketchedSgd, ABucketOfTooManyElementsIsRefused) {
  const auto method = make("sketched_sgd,rate=1000");
  const layout::Layout large({{"a", 0, 3'000'000'000, 1000, {3'000'000, 1000}},
                              {"b", 3'000'000'000, 3'000'000'000, 1000, {3'000'000, 1000}}});
  EXPECT_THROW(static_cast<void>(method->cost(large, 2, 0, 0)), core::UsageError);
}

TEST(SketchedSgd, DoesWhatThePlainStatementDoes) {
  std::mt19937 random(1);
  const layout::Layout layout({{"a", 0, 1500, 20}, {"b", 1500, 900, 20}});
  for (const std::string momentum : {"0", "0.9"}) {
    for (const int size : {1, 2, 3, 5}) {
      World world(size, "sketched_sgd,rate=20,momentum=" + momentum);
      PlainSketchedSgd plain(static_cast<std::size_t>(size), 2400, 120, std::stof(momentum));
      for (int step = 0; step < 5; ++step) {
        Gradients gradients = testing::normal(size, 2400, random);
        const std::vector<float> expected = plain.step(gradients);
        world.reduce(gradients, layout);
        ASSERT_EQ(gradients[0], expected) << "step " << step << " of " << size;
        for (int r = 0; r < size; ++r) {
          const auto memories = copies_of(world.method(r));
          const auto& v = plain.v[static_cast<std::size_t>(r)];
          ASSERT_EQ(memories.at("b"), std::vector<float>(v.begin() + 1500, v.end()));
          ASSERT_EQ(memories.contains("b/velocity"), momentum != "0");
        }
      }
    }
  }
}

TEST(SketchedSgd, FindsTheHeavyEntriesOfTheSumAndNotOfARank) {
  const layout::Layout layout({{"a", 0, 10000, 1000}});
  World world(2, "sketched_sgd,columns=2000");
  Gradients gradients(2, std::vector<float>(10000, 0.0F));
  for (std::size_t i = 0; i < 10; ++i) {
    gradients[0][i * 997] = 3;  // heavy together
    gradients[1][i * 997] = 3;
    gradients[0][i * 997 + 1] = 50;  // heavy at a rank, and nothing in the sum
    gradients[1][i * 997 + 1] = -50;
  }
  world.reduce(gradients, layout);
  for (std::size_t i = 0; i < 10; ++i) {
    EXPECT_EQ(gradients[0][i * 997], 3.0F);
    EXPECT_EQ(gradients[0][i * 997 + 1], 0.0F);
  }
}

TEST(SketchedSgd, UndoBringsBackTheMomentumToo) {
  const layout::Layout layout({{"a", 0, 500, 20}});
  std::mt19937 random(2);
  World world(2, "sketched_sgd,momentum=0.5");
  Gradients gradients = testing::normal(2, 500, random);
  world.reduce(gradients, layout);
  const auto before = copies_of(world.method(0));
  gradients = testing::normal(2, 500, random);
  const Gradients in = gradients;
  world.reduce(gradients, layout);
  world.run([&](int rank) { world.method(rank).undo(); });
  const auto after = copies_of(world.method(0));
  for (std::size_t i = 0; i < 500; ++i) {
    const float u = in[0][i] + 0.5F * before.at("a/velocity")[i];
    EXPECT_EQ(after.at("a/velocity")[i], u);
    EXPECT_EQ(after.at("a")[i], before.at("a")[i] + u);
  }
}

TEST(SketchedSgd, ASliceThatBecomesDenseSendsItsMemory) {
  const layout::Layout compressed({{"a", 0, 500, 20}, {"b", 500, 500, 20}});
  const layout::Layout dense({{"a", 0, 500, 1}, {"b", 500, 500, 20}});
  const layout::Layout all_dense({{"a", 0, 500, 1}, {"b", 500, 500, 1}});
  for (const layout::Layout* next : {&dense, &all_dense}) {
    std::mt19937 random(3);
    World world(2, "sketched_sgd,momentum=0");
    Gradients gradients = testing::normal(2, 1000, random);
    world.reduce(gradients, compressed);
    const auto first = copies_of(world.method(0)).at("a");
    const auto second = copies_of(world.method(1)).at("a");
    gradients.assign(2, std::vector<float>(1000, 0.0F));
    world.reduce(gradients, *next);
    for (std::size_t i = 0; i < 500; ++i) {
      EXPECT_FLOAT_EQ(gradients[0][i], first[i] / 2 + second[i] / 2);
    }
    EXPECT_FALSE(copies_of(world.method(0)).contains("a"));
    world.run([&](int rank) { world.method(rank).undo(); });
    EXPECT_EQ(copies_of(world.method(0)).at("a"), first);
  }
}

// What was sent stays sent: a memory that came back after configure() would be sent twice.
TEST(SketchedSgd, UndoBringsNothingBackAfterOtherOptions) {
  const layout::Layout compressed({{"a", 0, 500, 20}, {"b", 500, 500, 20}});
  const layout::Layout dense({{"a", 0, 500, 1}, {"b", 500, 500, 20}});
  std::mt19937 random(6);
  World world(2, "sketched_sgd,momentum=0.5");
  Gradients gradients = testing::normal(2, 1000, random);
  world.reduce(gradients, compressed);
  gradients = testing::normal(2, 1000, random);
  world.reduce(gradients, dense);
  const auto before = copies_of(world.method(0));
  ASSERT_FALSE(before.contains("a"));
  world.run([&](int rank) {
    world.method(rank).configure("nonfinite=nan");
    world.method(rank).undo();
  });
  EXPECT_EQ(copies_of(world.method(0)), before);
}

TEST(SketchedSgd, BringsMomentumUnlessThatIsZero) {
  EXPECT_TRUE(make("sketched_sgd")->brings_momentum());
  EXPECT_FALSE(make("sketched_sgd,momentum=0")->brings_momentum());
}

// What travels whole has momentum as well: an optimizer adds none.
TEST(SketchedSgd, DenseSlicesMoveWithMomentum) {
  const layout::Layout beside({{"a", 0, 500, 20}, {"b", 500, 500, 1}});
  const layout::Layout alone({{"a", 0, 500, 1}, {"b", 500, 500, 1}});
  for (const layout::Layout* layout : {&beside, &alone}) {
    std::mt19937 random(5);
    World world(2, "sketched_sgd,momentum=0.5");
    std::vector<std::vector<float>> u(2, std::vector<float>(500, 0.0F));
    for (int step = 0; step < 3; ++step) {
      Gradients gradients = testing::normal(2, 1000, random);
      for (std::size_t r = 0; r < 2; ++r) {
        for (std::size_t i = 0; i < 500; ++i) u[r][i] = 0.5F * u[r][i] + gradients[r][500 + i];
      }
      world.reduce(gradients, *layout);
      for (std::size_t i = 0; i < 500; ++i) {
        ASSERT_EQ(gradients[0][500 + i], u[0][i] * 0.5F + u[1][i] * 0.5F);
      }
      ASSERT_EQ(copies_of(world.method(1)).at("b/velocity"), u[1]);
    }
    // A step that is taken back has not moved it.
    const auto before = copies_of(world.method(0)).at("b/velocity");
    Gradients gradients = testing::normal(2, 1000, random);
    world.reduce(gradients, *layout);
    EXPECT_NE(copies_of(world.method(0)).at("b/velocity"), before);
    world.run([&](int rank) { world.method(rank).undo(); });
    EXPECT_EQ(copies_of(world.method(0)).at("b/velocity"), before);
    // Nor has one that is refused, at whichever rank something was not finite.
    gradients = testing::normal(2, 1000, random);
    gradients[1][300] = std::nanf("");
    world.reduce(gradients, *layout);
    EXPECT_TRUE(std::isnan(gradients[0][700]));
    EXPECT_EQ(copies_of(world.method(0)).at("b/velocity"), before);
  }
}

TEST(SketchedSgd, CountersEqualTheFormulaAndDoNotGrow) {
  const std::string spec = "sketched_sgd,rate=20";
  const layout::Layout layout = layout_for(spec, small_model());
  for (const int size : {1, 2, 3, 4, 5, 8}) {
    World world(size, spec);
    std::mt19937 random(4);
    for (std::int64_t step = 0; step < 3; ++step) {
      std::vector<comm::Counters> before;
      for (int r = 0; r < size; ++r) before.push_back(world.end(r).counters());
      Gradients gradients = testing::normal(size, layout.elements(), random);
      world.reduce(gradients, layout);
      if (step == 0) continue;  // in which the ranks also agree on what they do
      for (int r = 0; r < size; ++r) {
        EXPECT_EQ(world.end(r).counters() - before[static_cast<std::size_t>(r)],
                  world.method(r).cost(layout, size, r, step));
      }
    }
  }
  const layout::Layout large({{"a", 0, 1000000, 1000}});
  const auto scaled = [&](int size) {
    const comm::Traffic total = make("sketched_sgd")->cost(large, size, 0, 0).total();
    return static_cast<double>(total.sent + total.received) / (2.0 * (size - 1) / size);
  };
  // 24 numbers for each of the 1000 kept: about 40 times less than dense.
  EXPECT_NEAR(scaled(2), 2 * 4 * 24000, 100);
  EXPECT_NEAR(scaled(64) / scaled(2), 1, 0.01);
}

TEST(SketchedSgd, RefusesWhatItCannotDo) {
  const auto refusal = [](const std::string& spec) -> std::string {
    try {
      make(spec);
    } catch (const core::UsageError& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_NE(refusal("sketched_sgd,momentum=1").find("momentum=<a number in [0, 0.9999]>"),
            std::string::npos);
  for (const std::string bad :
       {"sketched_sgd,rate=0.5", "sketched_sgd,rows=0", "sketched_sgd,rows=64",
        "sketched_sgd,candidates=0", "sketched_sgd,momentum=0.99999999999",
        "sketched_sgd,momentum=-1", "sketched_sgd,columns=-1", "sketched_sgd,columns=100000000",
        "sketched_sgd,first=x"}) {
    EXPECT_FALSE(refusal(bad).empty()) << bad;
  }
  const std::string full = make("sketched_sgd,rate=50,rows=7,columns=99,momentum=0.5")->spec();
  EXPECT_EQ(make(full)->spec(), full);
}

// "a/velocity" is where the velocity of "a" is saved.
TEST(SketchedSgd, ATensorNamedAsTheVelocityOfAnotherIsRefused) {
  const layout::Layout layout({{"a", 0, 100, 10}, {"a/velocity", 100, 100, 10}});
  for (const std::string momentum : {"0", "0.9"}) {
    World world(2, "sketched_sgd,rate=10,momentum=" + momentum);
    world.run([&](int rank) {
      std::vector<float> gradient(200, 1.0F);
      EXPECT_THROW(world.reduce_at(rank, core::Buffer::of(gradient.data(), 200), layout),
                   core::UsageError);
      EXPECT_TRUE(world.method(rank).memories().empty());
    });
  }
}

TEST(SketchedSgd, ASketchLargerThanTheHashesReachIsRefused) {
  const layout::Layout layout({{"a", 0, std::int64_t{1} << 28, 2}});
  EXPECT_THROW(make("sketched_sgd,rate=2")->cost(layout, 2, 0, 0), core::UsageError);
}

TEST(SketchedSgd, ASketchSmallerThanWhatIsKeptIsRefusedAtEveryRank) {
  const layout::Layout layout({{"a", 0, 1000, 10}});
  World world(2, "sketched_sgd,rate=10,columns=99");
  std::vector<std::string> errors(2);
  Gradients gradients(2, std::vector<float>(1000, 1.0F));
  world.run([&](int rank) {
    const auto at = static_cast<std::size_t>(rank);
    try {
      world.reduce_at(rank, core::Buffer::of(gradients[at].data(), 1000), layout);
    } catch (const core::UsageError& error) {
      errors[at] = error.what();
    }
  });
  EXPECT_NE(errors[0].find("99 columns"), std::string::npos) << errors[0];
  EXPECT_EQ(errors[0], errors[1]);
  for (int r = 0; r < 2; ++r) world.method(r).configure("columns=100");
  world.reduce(gradients, layout);
  EXPECT_TRUE(same_bits(gradients[0], gradients[1]));
}

}  // namespace
}  // namespace scalecom::methods
