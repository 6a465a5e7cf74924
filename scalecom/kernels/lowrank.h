#pragma once

#include <cstdint>
#include <span>

#include "scalecom/core/dtype.h"
#include "scalecom/kernels/elementwise.h"

/// A matrix and its approximation by two thin factors, M ~ P Q^T: what PowerSGD does to every
/// element. `p` has a row of `rank` numbers for every row of M; `q` lies the other way round, one
/// row of M's columns for every factor, so that both are read along M's rows.
///
/// A step is three passes over M, and the error of the last one is taken off in the first, not in
/// the last: so the matrix is read twice and the gradient written once, and what was sent can be
/// put back by forgetting the factors.
///
/// Sums are taken in a fixed order, whatever the instruction set and the number of threads:
///     P: every piece of kPiece columns in 16 interleaved chains of fma, which are folded in halves
///        (8, 4, 2, 1); pieces one after the other
///     Q: every block of kBlockRows rows as one chain of fma; blocks one after the other
///     P Q^T: one chain of fma over the factors
namespace scalecom::kernels::lowrank {

constexpr std::int64_t kPiece = 1024;
constexpr std::int64_t kBlockRows = 1024;
/// No memory grows beyond this, so that none of its products with unit vectors overflows, nor a sum
/// of those over any number of ranks: whatever it holds can be sent.
constexpr float kMost = 0x1p96F;

/// A gradient of rows x columns in the bucket and its memory, both by rows.
struct Matrix {
  void* grad = nullptr;
  core::DType dtype = core::DType::kFloat32;
  float* memory = nullptr;
  std::int64_t rows = 0;
  std::int64_t columns = 0;
};

struct Factors {
  const float* p = nullptr;
  const float* q = nullptr;
};

/// The passes of one instruction set, on one thread; every set gives the same bits.
struct Passes {
  /// Rows [begin, end): m becomes (m - last.p last.q^T) + g, and p = m q. A g that takes m beyond
  /// kMost, as one that is not finite does, counts as 0, and m is brought to kMost where what is
  /// left of it is larger. Returns whether there was none.
  bool (*accumulate)(const Matrix& matrix, Factors last, const float* q, std::int64_t rank,
                     std::int64_t begin, std::int64_t end, float* p);
  /// q = m^T p over the rows [begin, end) and the columns [first, last); row k of `q` begins at
  /// q + k * stride, and q[0] is that of column `first`.
  void (*project)(const Matrix& matrix, const float* p, std::int64_t rank, std::int64_t begin,
                  std::int64_t end, std::int64_t first, std::int64_t last, float* q,
                  std::int64_t stride);
  /// Rows [begin, end): g = p q^T, rounded to its type.
  void (*expand)(const Matrix& matrix, Factors factors, std::int64_t rank, std::int64_t begin,
                 std::int64_t end);
};

/// One matrix in a step.
struct Job {
  Matrix matrix;
  std::int64_t offset = 0;  ///< of its gradient in the bucket, where that is bound later
  std::uint64_t key = 0;    ///< tells its draws from those of other matrices
  std::int64_t rank = 1;
  float* last_p = nullptr;  ///< the factors of the last step; zeros where nothing was sent
  float* last_q = nullptr;
  float* start_q = nullptr;  ///< what P = M Q begins with
  float* p = nullptr;        ///< of this step
  float* q = nullptr;
};

// Over all jobs of a bucket, on the pool's threads. A flag is 0, or 1 once something was not
// finite.
using Flag = elementwise::Flag;

/// memory = (memory - last_p last_q^T) + gradient; p = memory start_q. Sets the flag where
/// something was not finite, or too large.
void accumulate(std::span<const Job> jobs, Flag* flag);
/// q = memory^T p.
void project(std::span<const Job> jobs);
/// q, a sum over ranks, times `factor`. Sets the flag where p q^T could overflow: p's columns are
/// unit vectors, so that no entry is larger than the sum of |q| over the factors.
void average_q(std::span<const Job> jobs, float factor, Flag* flag);
/// gradient = p q^T, and the factors become the last ones. Where the flag is set, the gradient
/// becomes NaN and the last factors 0.
void expand(std::span<const Job> jobs, const Flag* flag);
/// memory -= last_p last_q^T, to the bits of accumulate(), and the last factors become 0.
void settle(std::span<const Job> jobs);

/// The columns of P become orthonormal (Gram-Schmidt in double precision, each column cleaned
/// twice). One that depends on those before it becomes 0.
void orthonormalise_p(std::span<const Job> jobs);
/// start_q becomes last_q, made orthonormal. A factor that is all 0 in last_q stays what it was in
/// start_q: a matrix that was 0 for a step does not lose its start.
void adopt_q(std::span<const Job> jobs);

/// `rank` rows of `columns` numbers, drawn from the normal distribution by counters: a function of
/// the seed alone. Orthonormal.
void draw_q(std::uint64_t seed, std::int64_t rank, std::int64_t columns, float* q);

}  // namespace scalecom::kernels::lowrank
