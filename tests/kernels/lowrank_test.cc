#include "scalecom/kernels/lowrank.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "scalecom/core/thread_pool.h"
#include "scalecom/kernels/kernels.h"
#include "tests/kernels/fixture.h"

namespace scalecom::kernels {
namespace {

using testing::Data;
using testing::draw;
using testing::DType;
using testing::Guarded;
using testing::kTypes;

// A matrix with all its factors, at odd distances from a cache line's start.
struct Case {
  Case(DType dtype, std::int64_t rows, std::int64_t columns, std::int64_t rank, Data data,
       std::uint32_t seed)
      : dtype(dtype),
        rows(rows),
        columns(columns),
        rank(rank),
        grad32(dtype == DType::kFloat32 ? rows * columns : 0, 3),
        grad16(dtype == DType::kFloat32 ? 0 : rows * columns, 5),
        memory(rows * columns, 1),
        last_p(rows * rank, 0),
        last_q(columns * rank, 2),
        start_q(columns * rank, 1),
        p(rows * rank, 3),
        q(columns * rank, 7) {
    std::mt19937 random(seed);
    for (std::int64_t i = 0; i < rows * columns; ++i) {
      const float g = draw(data, random, false);
      if (dtype == DType::kFloat32) {
        grad32[i] = g;
      } else {
        grad16[i] = core::to_bits16(dtype, g);
      }
      memory[i] = draw(Data::kNormal, random, true);
    }
    for (Guarded<float>* factor : {&last_p, &last_q, &start_q, &p, &q}) {
      for (std::int64_t i = 0; i < factor->size(); ++i) {
        (*factor)[i] = draw(Data::kNormal, random, true);
      }
    }
  }

  lowrank::Matrix matrix() {
    void* grad = dtype == DType::kFloat32 ? static_cast<void*>(grad32.data()) : grad16.data();
    return {grad, dtype, memory.data(), rows, columns};
  }
  lowrank::Job job() {
    return {.matrix = matrix(),
            .rank = rank,
            .last_p = last_p.data(),
            .last_q = last_q.data(),
            .start_q = start_q.data(),
            .p = p.data(),
            .q = q.data()};
  }
  void expect_same(const Case& other) const {
    EXPECT_TRUE(grad32.same(other.grad32)) << "in the gradient";
    EXPECT_TRUE(grad16.same(other.grad16)) << "in the gradient";
    EXPECT_TRUE(memory.same(other.memory)) << "in the memory";
    EXPECT_TRUE(p.same(other.p)) << "in p";
    EXPECT_TRUE(q.same(other.q)) << "in q";
  }

  DType dtype;
  std::int64_t rows;
  std::int64_t columns;
  std::int64_t rank;
  Guarded<float> grad32;
  Guarded<std::uint16_t> grad16;
  Guarded<float> memory;
  Guarded<float> last_p;
  Guarded<float> last_q;
  Guarded<float> start_q;
  Guarded<float> p;
  Guarded<float> q;
};

constexpr std::int64_t kColumns[] = {1, 2, 15, 16, 17, 40, 100, 1023, 1024, 1025, 2500};

template <typename Body>
void for_all_cases(const Body& body) {
  std::uint32_t seed = 0;
  for (const DType dtype : kTypes) {
    for (const Data data : {Data::kNormal, Data::kSpecial, Data::kHuge}) {
      for (const std::int64_t columns : kColumns) {
        for (const std::int64_t rows : {1, 3, 4, 9}) {
          for (const std::int64_t rank : {1, 2, 3, 4, 5, 8}) {
            body(Case(dtype, rows, columns, rank, data, ++seed));
          }
        }
      }
    }
  }
}

TEST(LowRank, EveryInstructionSetGivesTheBitsOfTheReference) {
  const lowrank::Passes& judge = tables().front()->low_rank;
  for_all_cases([&](const Case& problem) {
    for (const Table* table : tables().subspan(1)) {
      const lowrank::Passes& passes = table->low_rank;
      Case expected = problem;
      Case actual = problem;
      const auto both = [&](auto pass) {
        pass(judge, expected);
        pass(passes, actual);
      };
      bool finite[2] = {};
      both([&](const lowrank::Passes& set, Case& one) {
        finite[&one == &actual] =
            set.accumulate(one.matrix(), {one.last_p.data(), one.last_q.data()}, one.start_q.data(),
                           one.rank, 0, one.rows, one.p.data());
      });
      ASSERT_EQ(finite[0], finite[1]);
      both([](const lowrank::Passes& set, Case& one) {
        set.project(one.matrix(), one.p.data(), one.rank, 0, one.rows, 0, one.columns, one.q.data(),
                    one.columns);
      });
      both([](const lowrank::Passes& set, Case& one) {
        set.expand(one.matrix(), {one.p.data(), one.q.data()}, one.rank, 0, one.rows);
      });
      actual.expect_same(expected);
      if (::testing::Test::HasFailure()) {
        FAIL() << table->isa << " " << core::to_string(problem.dtype) << " " << problem.rows
               << " x " << problem.columns << " rank " << problem.rank;
      }
    }
  });
}

TEST(LowRank, PartsOfAMatrixGiveTheBitsOfTheWhole) {
  for (const Table* table : tables()) {
    Case whole(DType::kFloat32, 13, 75, 3, Data::kNormal, 1);
    Case parts = whole;
    const lowrank::Passes& passes = table->low_rank;
    const auto accumulate = [&](Case& one, std::int64_t begin, std::int64_t end) {
      passes.accumulate(one.matrix(), {one.last_p.data(), one.last_q.data()}, one.start_q.data(),
                        one.rank, begin, end, one.p.data());
    };
    accumulate(whole, 0, 13);
    accumulate(parts, 0, 5);
    accumulate(parts, 5, 13);
    const auto project = [&](Case& one, std::int64_t first, std::int64_t last) {
      passes.project(one.matrix(), one.p.data(), one.rank, 0, 13, first, last, one.q.data() + first,
                     one.columns);
    };
    project(whole, 0, 75);
    project(parts, 0, 33);
    project(parts, 33, 75);
    parts.expect_same(whole);
  }
}

TEST(LowRank, ANumberThatIsNotFiniteCountsAsNothing) {
  for (const Table* table : tables()) {
    Case clean(DType::kFloat32, 5, 40, 2, Data::kNormal, 2);
    Case bad = clean;
    clean.grad32[77] = 0;
    bad.grad32[77] = std::nanf("");
    for (Case* one : {&clean, &bad}) {
      const bool finite =
          table->low_rank.accumulate(one->matrix(), {one->last_p.data(), one->last_q.data()},
                                     one->start_q.data(), 2, 0, 5, one->p.data());
      EXPECT_EQ(finite, one == &clean);
    }
    EXPECT_TRUE(bad.memory.same(clean.memory));
    EXPECT_TRUE(bad.p.same(clean.p));
  }
}

// At its limit, with as much to take off again.
TEST(LowRank, AMemoryStaysAtItsLimit) {
  const float largest = std::numeric_limits<float>::max();
  for (const Table* table : tables()) {
    for (const float g : {0.0F, 1.0F, largest, -largest}) {
      Case one(DType::kFloat32, 5, 40, 1, Data::kNormal, 8);
      for (std::int64_t i = 0; i < 5; ++i) one.last_p[i] = 1;
      for (std::int64_t j = 0; j < 40; ++j) one.last_q[j] = -lowrank::kMost;
      for (std::int64_t i = 0; i < 200; ++i) {
        one.grad32[i] = g;
        one.memory[i] = i == 77 ? lowrank::kMost : -lowrank::kMost;
      }
      const bool fits =
          table->low_rank.accumulate(one.matrix(), {one.last_p.data(), one.last_q.data()},
                                     one.start_q.data(), 1, 0, 5, one.p.data());
      EXPECT_FALSE(fits) << table->isa << " " << g;
      for (std::int64_t i = 0; i < 200; ++i) {
        // What was sent takes the others to 0, and the largest numbers are not taken in.
        const float others = std::abs(g) == largest ? 0.0F : g;
        ASSERT_EQ(one.memory[i], i == 77 ? lowrank::kMost : others) << table->isa << " " << i;
      }
    }
  }
}

// Tall enough for several blocks of rows, wide enough for several stripes.
TEST(LowRank, NoResultDependsOnTheNumberOfThreads) {
  Case first(DType::kFloat32, 2500, 700, 2, Data::kNormal, 3);
  Case second = first;
  const int threads = core::pool_threads();
  for (Case* one : {&first, &second}) {
    core::set_pool_threads(one == &first ? 1 : 4);
    const lowrank::Job job = one->job();
    lowrank::Flag flag = 0;
    lowrank::accumulate({&job, 1}, &flag);
    lowrank::orthonormalise_p({&job, 1});
    lowrank::project({&job, 1});
    lowrank::average_q({&job, 1}, 0.5F, &flag);
    lowrank::expand({&job, 1}, &flag);
    EXPECT_EQ(flag, 0);
  }
  core::set_pool_threads(threads);
  second.expect_same(first);
}

TEST(LowRank, OrthonormalColumnsSpanWhatTheySpanned) {
  Case problem(DType::kFloat32, 300, 20, 5, Data::kNormal, 4);
  const Case before = problem;
  const lowrank::Job job = problem.job();
  lowrank::orthonormalise_p({&job, 1});
  for (std::int64_t a = 0; a < 5; ++a) {
    for (std::int64_t b = 0; b < 5; ++b) {
      double product = 0;
      for (std::int64_t i = 0; i < 300; ++i) {
        product += static_cast<double>(problem.p[i * 5 + a]) * problem.p[i * 5 + b];
      }
      EXPECT_NEAR(product, a == b ? 1 : 0, 1e-6);
    }
    // What is left of a column without its parts along the new ones.
    std::vector<double> left;
    for (std::int64_t i = 0; i < 300; ++i) left.push_back(before.p[i * 5 + a]);
    for (std::int64_t b = 0; b < 5; ++b) {
      double along = 0;
      for (std::size_t i = 0; i < 300; ++i) {
        along += left[i] * problem.p[static_cast<std::int64_t>(i) * 5 + b];
      }
      for (std::size_t i = 0; i < 300; ++i) {
        left[i] -= along * problem.p[static_cast<std::int64_t>(i) * 5 + b];
      }
    }
    for (const double x : left) EXPECT_NEAR(x, 0, 1e-5);
  }
}

TEST(LowRank, ADependentColumnBecomesZero) {
  Case problem(DType::kFloat32, 50, 20, 3, Data::kNormal, 5);
  for (std::int64_t i = 0; i < 50; ++i) {
    problem.p[i * 3 + 1] = 2 * problem.p[i * 3];
    problem.p[i * 3 + 2] = i == 7 ? 1e-30F : 0.0F;
  }
  const lowrank::Job job = problem.job();
  lowrank::orthonormalise_p({&job, 1});
  for (std::int64_t i = 0; i < 50; ++i) EXPECT_EQ(problem.p[i * 3 + 1], 0.0F);
  double square = 0;
  for (std::int64_t i = 0; i < 50; ++i) square += std::pow(problem.p[i * 3 + 2], 2);
  EXPECT_NEAR(square, 1, 1e-6) << "a tiny column is a direction like any other";
}

TEST(LowRank, AFactorThatIsAllZeroKeepsItsStart) {
  Case problem(DType::kFloat32, 50, 20, 2, Data::kNormal, 6);
  const lowrank::Job job = problem.job();
  lowrank::draw_q(1, 2, 20, problem.start_q.data());
  const Guarded<float> start = problem.start_q;
  for (std::int64_t j = 0; j < 40; ++j) problem.last_q[j] = 0;
  lowrank::adopt_q({&job, 1});
  EXPECT_TRUE(problem.start_q.same(start));
  for (std::int64_t j = 0; j < 20; ++j) problem.last_q[j] = static_cast<float>(j);
  lowrank::adopt_q({&job, 1});
  double square = 0;
  for (std::int64_t j = 0; j < 20; ++j) square += std::pow(problem.start_q[20 + j], 2);
  EXPECT_NEAR(square, 1, 1e-6);
}

TEST(LowRank, AProductThatCouldOverflowIsRefused) {
  Case problem(DType::kFloat32, 50, 20, 2, Data::kNormal, 7);
  const lowrank::Job job = problem.job();
  lowrank::Flag flag = 0;
  lowrank::average_q({&job, 1}, 1.0F, &flag);
  EXPECT_EQ(flag, 0);
  problem.q[3] = problem.q[23] = 1.5e38F;
  lowrank::average_q({&job, 1}, 1.0F, &flag);
  EXPECT_EQ(flag, 1);
  lowrank::expand({&job, 1}, &flag);
  for (std::int64_t i = 0; i < 1000; ++i) EXPECT_TRUE(std::isnan(problem.grad32[i]));
  for (std::int64_t i = 0; i < 40; ++i) EXPECT_EQ(problem.last_q[i], 0.0F);
}

// Mean 0, variance 1 before it is made orthonormal: here rank 1, times the root of its length.
TEST(LowRank, DrawsAreNormalAndFollowFromTheSeed) {
  constexpr std::int64_t kCount = 100000;
  std::vector<float> q(kCount);
  lowrank::draw_q(9, 1, kCount, q.data());
  double mean = 0;
  double fourth = 0;
  int beyond = 0;
  for (const float x : q) {
    const double z = x * std::sqrt(static_cast<double>(kCount));
    mean += z / kCount;
    fourth += std::pow(z, 4) / kCount;
    beyond += std::abs(z) > 1.959964 ? 1 : 0;
  }
  EXPECT_NEAR(mean, 0, 0.02);
  EXPECT_NEAR(fourth, 3, 0.15);
  EXPECT_NEAR(beyond, 5000, 350);
  std::vector<float> again(kCount);
  lowrank::draw_q(9, 1, kCount, again.data());
  EXPECT_EQ(q, again);
  lowrank::draw_q(10, 1, kCount, again.data());
  EXPECT_NE(q, again);
}

}  // namespace
}  // namespace scalecom::kernels
