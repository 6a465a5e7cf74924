#include "scalecom/methods/powersgd/powersgd.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cmath>

#include "scalecom/core/error.h"
#include "scalecom/core/text.h"
#include "scalecom/methods/powersgd/shape.h"
#include "tests/methods/shapes.h"

namespace scalecom::methods {
namespace {

using testing::copies_of;
using testing::Gradients;
using testing::layout_for;
using testing::same_bits;
using testing::small_model;
using testing::World;

using Numbers = std::vector<double>;

// PowerSGD stated again, as plainly as it can be, for one matrix and all ranks, in double
// precision.
class PlainPowerSgd {
 public:
  PlainPowerSgd(std::size_t ranks, std::size_t rows, std::size_t columns, std::vector<Numbers> q)
      : rows_(rows), columns_(columns), q_(std::move(q)), errors_(ranks, Numbers(rows * columns)) {}

  // The mean; `gradients` are the matrix's own, one a rank.
  Numbers step(const std::vector<Numbers>& gradients) {
    const std::size_t ranks = gradients.size();
    for (std::size_t r = 0; r < ranks; ++r) {
      for (std::size_t i = 0; i < errors_[r].size(); ++i) errors_[r][i] += gradients[r][i];
    }
    orthonormalise(q_);
    std::vector<Numbers> p(q_.size(), Numbers(rows_));
    for_each([&](std::size_t i, std::size_t j, std::size_t k) {
      for (const Numbers& m : errors_) p[k][i] += m[i * columns_ + j] * q_[k][j];
    });
    orthonormalise(p);
    for (Numbers& one : q_) one.assign(columns_, 0.0);
    for_each([&](std::size_t i, std::size_t j, std::size_t k) {
      for (const Numbers& m : errors_) {
        q_[k][j] += m[i * columns_ + j] * p[k][i] / static_cast<double>(ranks);
      }
    });
    Numbers mean(rows_ * columns_);
    for_each([&](std::size_t i, std::size_t j, std::size_t k) {
      mean[i * columns_ + j] += p[k][i] * q_[k][j];
    });
    for (Numbers& m : errors_) {
      for (std::size_t i = 0; i < m.size(); ++i) m[i] -= mean[i];
    }
    return mean;
  }

  const Numbers& error(std::size_t rank) const { return errors_[rank]; }

 private:
  template <typename Body>
  void for_each(Body body) const {
    for (std::size_t i = 0; i < rows_; ++i) {
      for (std::size_t j = 0; j < columns_; ++j) {
        for (std::size_t k = 0; k < q_.size(); ++k) body(i, j, k);
      }
    }
  }

  static void orthonormalise(std::vector<Numbers>& vectors) {
    for (std::size_t k = 0; k < vectors.size(); ++k) {
      for (std::size_t other = 0; other < k; ++other) {
        double along = 0;
        for (std::size_t i = 0; i < vectors[k].size(); ++i)
          along += vectors[k][i] * vectors[other][i];
        for (std::size_t i = 0; i < vectors[k].size(); ++i)
          vectors[k][i] -= along * vectors[other][i];
      }
      double square = 0;
      for (const double x : vectors[k]) square += x * x;
      for (double& x : vectors[k]) x /= std::sqrt(square);
    }
  }

  std::size_t rows_;
  std::size_t columns_;
  std::vector<Numbers> q_;
  std::vector<Numbers> errors_;
};

// A Q of the test's own, given to every rank as if it had been saved.
struct Start {
  Start(World& world, const std::string& name, std::int64_t columns, std::int64_t rank,
        std::mt19937& random) {
    std::normal_distribution<float> draw;
    std::vector<float> flat;
    for (std::int64_t k = 0; k < rank; ++k) {
      q.emplace_back();
      for (std::int64_t j = 0; j < columns; ++j) {
        flat.push_back(draw(random));
        q.back().push_back(flat.back());
      }
    }
    for (int r = 0; r < world.size(); ++r) {
      world.method(r).restore(0, testing::to_memories({{name + "/q", flat}}));
    }
  }
  std::vector<Numbers> q;
};

// Tensors, and the rows of the matrices that they are seen as.
const std::vector<std::pair<std::vector<std::int64_t>, std::int64_t>> kSeen = {
    {{40, 61}, 40},      {{1100, 30}, 1100}, {{16, 8, 3, 3}, 16},
    {{3, 3, 8, 16}, 72},  // the weights of a convolution that lie the other way round
    {{3, 3, 96}, 9},
};

TEST(PowerSgd, AConvolutionIsAMatrixWhicheverWayItLies) {
  for (const auto& [shape, rows] : kSeen) {
    const powersgd::Shape seen(layout_for("powersgd", {{"m", shape}}), 1);
    ASSERT_EQ(seen.matrices.size(), 1U);
    EXPECT_EQ(seen.matrices[0].rows, rows);
  }
  // Two rows and columns fewer are no reason to part with what the authors do.
  EXPECT_EQ(powersgd::Shape(layout_for("powersgd", {{"m", {8, 3, 3, 3}}}), 1).matrices[0].rows, 8);
  for (const std::vector<std::int64_t>& shape :
       std::vector<std::vector<std::int64_t>>{{}, {100}, {0, 4}, {1, 1, 100}}) {
    EXPECT_TRUE(powersgd::Shape(layout_for("powersgd", {{"m", shape}}), 1).matrices.empty());
  }
}

TEST(PowerSgd, DoesWhatThePlainStatementDoes) {
  std::mt19937 random(1);
  for (const auto& [shape, rows] : kSeen) {
    for (const int size : {1, 2, 3, 5}) {
      for (const std::int64_t rank : {1, 2, 4}) {
        const std::string spec = "powersgd,rank=" + std::to_string(rank);
        const layout::Layout layout = layout_for(spec, {{"m", shape}});
        World world(size, spec);
        const std::int64_t columns = layout.elements() / rows;
        const Start start(world, "m", columns, rank, random);
        const auto elements = static_cast<std::size_t>(layout.elements());
        PlainPowerSgd plain(static_cast<std::size_t>(size), static_cast<std::size_t>(rows),
                            static_cast<std::size_t>(columns), start.q);
        for (int step = 0; step < 4; ++step) {
          Gradients gradients = testing::normal(size, layout.elements(), random);
          std::vector<Numbers> in;
          for (const auto& one : gradients) in.emplace_back(one.begin(), one.end());
          const Numbers expected = plain.step(in);
          world.reduce(gradients, layout);
          double norm = 0;
          double off = 0;
          for (std::size_t i = 0; i < elements; ++i) {
            norm += expected[i] * expected[i];
            off += std::pow(gradients[0][i] - expected[i], 2);
          }
          ASSERT_LT(std::sqrt(off), 1e-4 * std::sqrt(norm)) << spec << " of " << size;
          const auto memory = copies_of(world.method(size - 1)).at("m");
          double held_off = 0;
          for (std::size_t i = 0; i < elements; ++i) {
            held_off += std::pow(memory[i] - plain.error(in.size() - 1)[i], 2);
          }
          ASSERT_LT(std::sqrt(held_off), 1e-4 * std::sqrt(norm)) << spec << " of " << size;
        }
      }
    }
  }
}

TEST(PowerSgd, SendsAMatrixOfItsRankExactlyButForRounding) {
  const layout::Layout layout = layout_for("powersgd", {{"m", {50, 70}}});
  std::mt19937 random(2);
  std::normal_distribution<float> draw;
  World world(1, "powersgd,rank=2");
  Gradients gradients(1, std::vector<float>(3500, 0.0F));
  for (int k = 0; k < 2; ++k) {
    std::vector<float> a(50), b(70);
    for (float& x : a) x = draw(random);
    for (float& x : b) x = draw(random);
    for (std::size_t i = 0; i < 3500; ++i) gradients[0][i] += a[i / 70] * b[i % 70];
  }
  const Gradients in = gradients;
  world.reduce(gradients, layout);
  for (std::size_t i = 0; i < 3500; ++i) ASSERT_NEAR(gradients[0][i], in[0][i], 1e-4);
}

// More factors than a matrix has directions: the spare ones must not count anything twice.
TEST(PowerSgd, AMatrixOfLowerRankThanAskedForIsSentOnce) {
  const layout::Layout layout = layout_for("powersgd", {{"m", {50, 70}}});
  World world(2, "powersgd,rank=4");
  for (int step = 0; step < 5; ++step) {
    Gradients gradients(2, std::vector<float>(3500, 0.0F));
    for (auto& one : gradients) {
      for (std::size_t j = 0; j < 70; ++j) one[7 * 70 + j] = static_cast<float>(j) - 30.5F;
    }
    const Gradients in = gradients;
    world.reduce(gradients, layout);
    for (std::size_t i = 0; i < 3500; ++i) ASSERT_NEAR(gradients[0][i], in[0][i], 1e-3) << step;
  }
}

TEST(PowerSgd, ARankTooLargeForAMatrixLeavesItDense) {
  std::mt19937 random(3);
  for (const std::string spec : {"powersgd,rank=13", "powersgd,rank=1000000"}) {
    const layout::Layout layout = layout_for(spec, {{"m", {40, 61}}});
    World world(3, spec);
    World dense(3, "dense");
    Gradients gradients = testing::normal(3, layout.elements(), random);
    Gradients expected = gradients;
    world.reduce(gradients, layout);
    dense.reduce(expected, layout);
    EXPECT_TRUE(same_bits(gradients[0], expected[0]));
    EXPECT_EQ(world.method(0).cost(layout, 3, 1, 0), dense.method(0).cost(layout, 3, 1, 0));
  }
}

TEST(PowerSgd, WarmUpStepsAreDense) {
  const layout::Layout layout = layout_for("powersgd", small_model());
  std::mt19937 random(4);
  World world(2, "powersgd,warmup=2");
  World dense(2, "dense");
  for (int step = 0; step < 4; ++step) {
    Gradients gradients = testing::normal(2, layout.elements(), random);
    Gradients expected = gradients;
    world.reduce(gradients, layout);
    dense.reduce(expected, layout);
    EXPECT_EQ(same_bits(gradients[0], expected[0]), step < 2) << step;
  }
}

// A Q is only worth keeping where the next step begins with it.
TEST(PowerSgd, KeepsQForAWarmStartAloneAfterAWarmUpToo) {
  const layout::Layout layout({{"w", 0, 2400, 10, {40, 60}}});
  std::mt19937 random(5);
  for (const bool warm : {true, false}) {
    World world(2, core::concat("powersgd,warmup=2,warm_start=", warm ? "on" : "off"));
    for (int step = 0; step < 4; ++step) {
      Gradients gradients = testing::normal(2, 2400, random);
      world.reduce(gradients, layout);
    }
    std::vector<std::string> names;
    for (const NamedMemory& memory : world.method(0).memories()) names.push_back(memory.name);
    EXPECT_EQ(names, warm ? std::vector<std::string>({"w", "w/q"}) : std::vector<std::string>{"w"});
  }
}

TEST(PowerSgd, ASliceThatBecomesDenseSendsItsMemory) {
  const layout::Layout layout = layout_for("powersgd", small_model());
  std::mt19937 random(5);
  World world(2, "powersgd,rank=2");
  Gradients gradients = testing::normal(2, layout.elements(), random);
  world.reduce(gradients, layout);
  const auto first = copies_of(world.method(0));
  const auto second = copies_of(world.method(1));
  for (int r = 0; r < 2; ++r) world.method(r).configure("rank=1000");
  EXPECT_EQ(copies_of(world.method(0)).at("fc"), first.at("fc"));
  gradients.assign(2, std::vector<float>(static_cast<std::size_t>(layout.elements()), 0.0F));
  world.reduce(gradients, layout);
  const layout::Slice& fc = layout.slices()[2];
  for (std::size_t i = 0; i < static_cast<std::size_t>(fc.length); ++i) {
    EXPECT_NEAR(gradients[0][static_cast<std::size_t>(fc.offset) + i],
                (first.at("fc")[i] + second.at("fc")[i]) / 2, 1e-5);
  }
  EXPECT_TRUE(copies_of(world.method(0)).empty());
  world.run([&](int rank) { world.method(rank).undo(); });
  EXPECT_EQ(copies_of(world.method(1)).at("fc"), second.at("fc"));
}

TEST(PowerSgd, OptionsMayChangeBeforeTheFirstStep) {
  const layout::Layout layout = layout_for("powersgd", {{"m", {40, 61}}});
  World world(2, "powersgd");
  World other(2, "powersgd,rank=3");
  for (int r = 0; r < 2; ++r) world.method(r).configure("rank=3");
  std::mt19937 random(8);
  Gradients gradients = testing::normal(2, layout.elements(), random);
  Gradients expected = gradients;
  world.reduce(gradients, layout);
  other.reduce(expected, layout);
  EXPECT_TRUE(same_bits(gradients[0], expected[0]));
}

// Near the largest numbers a memory less the mean was infinite, for good: here rank 1's.
TEST(PowerSgd, NoInfinityGetsIntoAMemory) {
  const layout::Layout layout = layout_for("powersgd", {{"m", {20, 30}}});
  const std::vector<float> huge{3e38F, -3.3e38F, 3e38F};
  for (const float scale : {1.0F, 0.25F, 0x1p-31F, 0x1p-33F}) {
    World world(3, "powersgd");
    std::mt19937 random(9);
    for (int step = 0; step < 6; ++step) {
      Gradients gradients = testing::normal(3, layout.elements(), random);
      for (std::size_t r = 0; r < 3 && step < 3; ++r) gradients[r][7] = scale * huge[r];
      world.reduce(gradients, layout);
      for (int r = 0; r < 3; ++r) {
        const std::vector<float> memory = copies_of(world.method(r)).at("m");
        for (const float held : memory) {
          ASSERT_TRUE(std::isfinite(held)) << "rank " << r << ", step " << step << ", " << scale;
        }
      }
      EXPECT_TRUE(step < 3 || std::isfinite(gradients[0][7])) << "step " << step << ", " << scale;
    }
  }
}

TEST(PowerSgd, TheStartIsAFunctionOfTheSeed) {
  const layout::Layout layout = layout_for("powersgd", {{"m", {40, 61}}});
  const auto mean = [&](const std::string& spec) {
    World world(2, spec);
    std::mt19937 random(6);
    Gradients gradients = testing::normal(2, layout.elements(), random);
    world.reduce(gradients, layout);
    return gradients[0];
  };
  EXPECT_TRUE(same_bits(mean("powersgd"), mean("powersgd,seed=0")));
  EXPECT_FALSE(same_bits(mean("powersgd"), mean("powersgd,seed=1")));
}

TEST(PowerSgd, CountersEqualTheFormula) {
  const layout::Layout layout = layout_for("powersgd", small_model());
  for (const int size : {1, 2, 3, 4, 5, 8}) {
    for (const std::string spec : {"powersgd", "powersgd,rank=3", "powersgd,warmup=9"}) {
      World world(size, spec);
      for (std::int64_t step = 0; step < 3; ++step) {
        std::vector<comm::Counters> before;
        for (int r = 0; r < size; ++r) before.push_back(world.end(r).counters());
        std::mt19937 random(7);
        Gradients gradients = testing::normal(size, layout.elements(), random);
        world.reduce(gradients, layout);
        if (step == 0) continue;  // in which the ranks also agree on what they do
        for (int r = 0; r < size; ++r) {
          EXPECT_EQ(world.end(r).counters() - before[static_cast<std::size_t>(r)],
                    world.method(r).cost(layout, size, r, step))
              << spec << ", rank " << r << " of " << size;
        }
      }
    }
  }
  // Rank 1: rows and columns of conv, fc and out; the other two, and the flag, as they are.
  const auto sent = make("powersgd")->cost(layout, 2, 0, 0).total().sent;
  EXPECT_NEAR(static_cast<double>(sent), 4.0 * (16 + 72 + 40 + 61 + 7 + 40 + 16 + 1 + 1), 8);
}

TEST(PowerSgd, RefusesWhatItCannotDo) {
  for (const std::string bad :
       {"powersgd,rank=0", "powersgd,rank=-1", "powersgd,rank=1.5", "powersgd,rank=2000000",
        "powersgd,warm_start=maybe", "powersgd,warmup=-1", "powersgd,beta=1"}) {
    EXPECT_THROW(make(bad), core::UsageError) << bad;
  }
  const std::string full = make("powersgd,rank=3,warm_start=off,seed=5,warmup=7")->spec();
  EXPECT_EQ(make(full)->spec(), full);
}

TEST(PowerSgd, AMemoryOfAnotherModelIsRefusedAtEveryRank) {
  const layout::Layout layout = layout_for("powersgd", {{"m", {40, 61}}});
  World world(2, "powersgd");
  world.method(1).restore(0, testing::to_memories({{"m/q", std::vector<float>(7, 1.0F)}}));
  Gradients gradients(2, std::vector<float>(2440, 1.0F));
  std::atomic<int> refused{0};
  world.run([&](int rank) {
    auto& mine = gradients[static_cast<std::size_t>(rank)];
    EXPECT_THROW(world.reduce_at(rank, core::Buffer::of(mine.data(), 2440), layout),
                 core::UsageError);
    ++refused;
  });
  EXPECT_EQ(refused, 2);
}

// "attn/q" is where the Q of "attn" is kept, and saved.
TEST(PowerSgd, ATensorNamedAsTheQOfAnotherIsRefused) {
  const layout::Layout layout =
      layout_for("powersgd", {{"attn", {20, 30}}, {"attn/q", {20, 20}}, {"bias/q", {7}}});
  World world(2, "powersgd");
  std::vector<std::string> errors(2);
  world.run([&](int rank) {
    std::vector<float> gradient(1007, 1.0F);
    try {
      world.reduce_at(rank, core::Buffer::of(gradient.data(), 1007), layout);
    } catch (const core::UsageError& error) {
      errors[static_cast<std::size_t>(rank)] = error.what();
    }
    EXPECT_TRUE(world.method(rank).memories().empty());
  });
  EXPECT_NE(errors[0].find("'attn/q', which is the name of another one's Q"), std::string::npos)
      << errors[0];
  EXPECT_EQ(errors[0], errors[1]);
}

}  // namespace
}  // namespace scalecom::methods
