#include "scalecom/kernels/lowrank.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <limits>
#include <numbers>
#include <utility>
#include <vector>

#include "scalecom/core/hash.h"
#include "scalecom/core/thread_pool.h"
#include "scalecom/kernels/kernels.h"

namespace scalecom::kernels::lowrank {
namespace {

// Elements of one task of the pool, about.
constexpr std::int64_t kTask = 65'536;
// Columns of a task that goes down the rows: their part of Q stays in the nearest cache.
constexpr std::int64_t kStripe = 512;

struct Rows {
  const Job* job;
  std::int64_t begin;
  std::int64_t end;
};

// Work(rows) over all rows of all jobs, in tasks of whole rows; returns whether all did.
template <typename Work>
bool all_rows(std::span<const Job> jobs, const Work& work) {
  std::vector<Rows> tasks;
  for (const Job& job : jobs) {
    // A multiple of the rows that any instruction set takes together.
    const std::int64_t rows = std::max<std::int64_t>(4, kTask / job.matrix.columns / 4 * 4);
    for (std::int64_t begin = 0; begin < job.matrix.rows; begin += rows) {
      tasks.push_back({&job, begin, std::min(job.matrix.rows, begin + rows)});
    }
  }
  std::atomic<bool> all{true};
  core::parallel_for(static_cast<std::int64_t>(tasks.size()), [&](std::int64_t i) {
    if (!work(tasks[static_cast<std::size_t>(i)])) all.store(false, std::memory_order_relaxed);
  });
  return all;
}

std::int64_t row_blocks(const Matrix& matrix) {
  return (matrix.rows + kBlockRows - 1) / kBlockRows;
}

// A block of rows and a stripe of columns, whose products go to `q`.
struct Tile {
  const Job* job;
  std::int64_t block;
  std::int64_t first;
  std::int64_t last;
  float* q;
};

// The tiles of a job. Where it has several blocks of rows, each has a Q of its own in `partial`.
void add_tiles(const Job& job, std::vector<float>& partial, std::vector<Tile>& tiles) {
  const std::int64_t blocks = row_blocks(job.matrix);
  const std::int64_t size = job.rank * job.matrix.columns;
  if (blocks > 1) partial.resize(static_cast<std::size_t>(blocks * size));
  for (std::int64_t block = 0; block < blocks; ++block) {
    float* const q = blocks > 1 ? partial.data() + block * size : job.q;
    for (std::int64_t first = 0; first < job.matrix.columns; first += kStripe) {
      const std::int64_t last = std::min(job.matrix.columns, first + kStripe);
      tiles.push_back({&job, block, first, last, q + first});
    }
  }
}

void add_blocks(const Job& job, const std::vector<float>& partial) {
  const std::int64_t size = job.rank * job.matrix.columns;
  for (std::int64_t i = 0; i < size; ++i) {
    float sum = partial[static_cast<std::size_t>(i)];
    for (std::int64_t block = 1; block < row_blocks(job.matrix); ++block) {
      sum += partial[static_cast<std::size_t>(block * size + i)];
    }
    job.q[i] = sum;
  }
}

// `count` vectors of `length` numbers, made orthonormal one after the other in double precision.
class GramSchmidt {
 public:
  GramSchmidt(std::int64_t count, std::int64_t length)
      : count_(count), length_(length), numbers_(static_cast<std::size_t>(count * length)) {}

  double* vector(std::int64_t k) { return numbers_.data() + k * length_; }

  void run() {
    for (std::int64_t k = 0; k < count_; ++k) {
      const double before = norm(k);
      // Once leaves rounding along the others where little remains; twice does not.
      for (int round = 0; round < 2; ++round) {
        for (std::int64_t other = 0; other < k; ++other) remove(other, k);
      }
      // What single precision cannot tell from rounding is not a direction.
      constexpr double kDependent = 1e-10;
      const double after = norm(k);
      const double factor = after > kDependent * before ? 1 / after : 0;
      for (std::int64_t i = 0; i < length_; ++i) vector(k)[i] *= factor;
    }
  }

 private:
  double norm(std::int64_t k) { return std::sqrt(product(vector(k), vector(k))); }

  double product(const double* a, const double* b) const {
    // Four chains, for speed, in a fixed order.
    double sums[4] = {};
    std::int64_t i = 0;
    for (; i + 4 <= length_; i += 4) {
      for (int l = 0; l < 4; ++l) sums[l] += a[i + l] * b[i + l];
    }
    for (; i < length_; ++i) sums[0] += a[i] * b[i];
    return (sums[0] + sums[1]) + (sums[2] + sums[3]);
  }

  void remove(std::int64_t other, std::int64_t from) {
    const double* const a = vector(other);
    double* const b = vector(from);
    const double along = product(a, b);
    for (std::int64_t i = 0; i < length_; ++i) b[i] -= along * a[i];
  }

  std::int64_t count_;
  std::int64_t length_;
  std::vector<double> numbers_;
};

template <typename Work>
void for_each_job(std::span<const Job> jobs, const Work& work) {
  core::parallel_for(static_cast<std::int64_t>(jobs.size()),
                     [&](std::int64_t i) { work(jobs[static_cast<std::size_t>(i)]); });
}

void forget(const Job& job) {
  std::fill_n(job.last_p, job.rank * job.matrix.rows, 0.0F);
  std::fill_n(job.last_q, job.rank * job.matrix.columns, 0.0F);
}

// In (0, 1), from 53 bits of a counter's hash.
double uniform(std::uint64_t seed, std::uint64_t counter) {
  return (static_cast<double>(core::combine(seed, counter) >> 11) + 0.5) * 0x1p-53;
}

}  // namespace

void accumulate(std::span<const Job> jobs, Flag* flag) {
  const Passes& passes = table().low_rank;
  const bool finite = all_rows(jobs, [&](const Rows& rows) {
    const Job& job = *rows.job;
    return passes.accumulate(job.matrix, {job.last_p, job.last_q}, job.start_q, job.rank,
                             rows.begin, rows.end, job.p);
  });
  if (!finite) *flag = 1;
}

void project(std::span<const Job> jobs) {
  std::vector<std::vector<float>> partial(jobs.size());
  std::vector<Tile> tiles;
  for (std::size_t i = 0; i < jobs.size(); ++i) add_tiles(jobs[i], partial[i], tiles);
  const Passes& passes = table().low_rank;
  core::parallel_for(static_cast<std::int64_t>(tiles.size()), [&](std::int64_t i) {
    const Tile& tile = tiles[static_cast<std::size_t>(i)];
    const Job& job = *tile.job;
    const std::int64_t begin = tile.block * kBlockRows;
    passes.project(job.matrix, job.p, job.rank, begin,
                   std::min(job.matrix.rows, begin + kBlockRows), tile.first, tile.last, tile.q,
                   job.matrix.columns);
  });
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    if (!partial[i].empty()) add_blocks(jobs[i], partial[i]);
  }
}

void average_q(std::span<const Job> jobs, float factor, Flag* flag) {
  constexpr float kMostSent = std::numeric_limits<float>::max() / 2;
  std::atomic<bool> safe{true};
  for_each_job(jobs, [&](const Job& job) {
    for (std::int64_t j = 0; j < job.matrix.columns; ++j) {
      float sum = 0;
      for (std::int64_t k = 0; k < job.rank; ++k) {
        float& q = job.q[k * job.matrix.columns + j];
        q *= factor;
        sum += std::abs(q);
      }
      if (!(sum <= kMostSent)) safe.store(false, std::memory_order_relaxed);
    }
  });
  if (!safe) *flag = 1;
}

void expand(std::span<const Job> jobs, const Flag* flag) {
  if (*flag != 0) {
    for (const Job& job : jobs) {
      elementwise::store(nullptr, job.matrix.rows * job.matrix.columns, job.matrix.grad,
                         job.matrix.dtype, flag, {});
      forget(job);
    }
    return;
  }
  const Passes& passes = table().low_rank;
  all_rows(jobs, [&](const Rows& rows) {
    const Job& job = *rows.job;
    passes.expand(job.matrix, {job.p, job.q}, job.rank, rows.begin, rows.end);
    return true;
  });
  for (const Job& job : jobs) {
    std::copy_n(job.p, job.rank * job.matrix.rows, job.last_p);
    std::copy_n(job.q, job.rank * job.matrix.columns, job.last_q);
  }
}

void settle(std::span<const Job> jobs) {
  all_rows(jobs, [](const Rows& rows) {
    const Job& job = *rows.job;
    const std::int64_t columns = job.matrix.columns;
    for (std::int64_t i = rows.begin; i < rows.end; ++i) {
      for (std::int64_t j = 0; j < columns; ++j) {
        float& left = job.matrix.memory[i * columns + j];
        for (std::int64_t k = 0; k < job.rank; ++k) {
          left = std::fma(-job.last_p[i * job.rank + k], job.last_q[k * columns + j], left);
        }
      }
    }
    return true;
  });
  for (const Job& job : jobs) forget(job);
}

void orthonormalise_p(std::span<const Job> jobs) {
  for_each_job(jobs, [](const Job& job) {
    GramSchmidt vectors(job.rank, job.matrix.rows);
    for (std::int64_t k = 0; k < job.rank; ++k) {
      for (std::int64_t i = 0; i < job.matrix.rows; ++i) {
        vectors.vector(k)[i] = job.p[i * job.rank + k];
      }
    }
    vectors.run();
    for (std::int64_t k = 0; k < job.rank; ++k) {
      for (std::int64_t i = 0; i < job.matrix.rows; ++i) {
        job.p[i * job.rank + k] = static_cast<float>(vectors.vector(k)[i]);
      }
    }
  });
}

void adopt_q(std::span<const Job> jobs) {
  for_each_job(jobs, [](const Job& job) {
    const std::int64_t columns = job.matrix.columns;
    GramSchmidt vectors(job.rank, columns);
    bool any = false;
    for (std::int64_t k = 0; k < job.rank; ++k) {
      const float* const fresh = job.last_q + k * columns;
      const bool zero = std::all_of(fresh, fresh + columns, [](float x) { return x == 0; });
      any = any || !zero;
      std::copy_n(zero ? job.start_q + k * columns : fresh, columns, vectors.vector(k));
    }
    if (!any) return;
    vectors.run();
    std::copy_n(vectors.vector(0), job.rank * columns, job.start_q);
  });
}

// Box and Muller's: two uniform numbers make two normal ones.
void draw_q(std::uint64_t seed, std::int64_t rank, std::int64_t columns, float* q) {
  GramSchmidt vectors(rank, columns);
  const std::int64_t count = rank * columns;
  for (std::int64_t i = 0; i < count; i += 2) {
    const auto counter = static_cast<std::uint64_t>(i);
    const double radius = std::sqrt(-2 * std::log(uniform(seed, counter)));
    const double angle = 2 * std::numbers::pi * uniform(seed, counter + 1);
    vectors.vector(0)[i] = radius * std::cos(angle);
    if (i + 1 < count) vectors.vector(0)[i + 1] = radius * std::sin(angle);
  }
  vectors.run();
  std::copy_n(vectors.vector(0), count, q);
}

}  // namespace scalecom::kernels::lowrank
