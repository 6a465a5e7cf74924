#pragma once

#include <algorithm>

#include "scalecom/core/cuda/native.h"
#include "scalecom/kernels/cuda/grid.cuh"
#include "scalecom/kernels/cuda/lowrank.h"
#include "scalecom/kernels/cuda/policy.h"

/// How the matrices of a batch are divided among warps and blocks.
namespace scalecom::kernels::cuda::lowrank {

using Policy = policy::LowRank;

constexpr int kWarp = 32;
constexpr int kWarps = Policy::kThreads / kWarp;

__host__ __device__ inline std::int64_t parts_of(std::int64_t whole, std::int64_t part) {
  return (whole + part - 1) / part;
}
__host__ __device__ inline std::int64_t pieces_of(const Job& job) {
  return parts_of(job.matrix.columns, Policy::kPiece);
}
__host__ __device__ inline std::int64_t row_blocks_of(const Job& job) {
  return parts_of(job.matrix.rows, Policy::kBlockRows);
}
/// Groups of rows times pieces of columns: a warp's work.
__host__ __device__ inline std::int64_t units_of(const Job& job) {
  return parts_of(job.matrix.rows, Policy::kRows) * pieces_of(job);
}
/// Blocks of rows times stripes of columns: a block's work.
__host__ __device__ inline std::int64_t tiles_of(const Job& job) {
  return row_blocks_of(job) * parts_of(job.matrix.columns, Policy::kColumns);
}

/// The rows and columns of a unit.
struct Unit {
  __device__ Unit(const Job& job, std::int64_t unit)
      : row(unit / pieces_of(job) * Policy::kRows),
        piece(unit % pieces_of(job)),
        begin(piece * Policy::kPiece),
        end(min(job.matrix.columns, begin + Policy::kPiece)),
        rows(static_cast<int>(min(std::int64_t{Policy::kRows}, job.matrix.rows - row))) {}

  std::int64_t row;
  std::int64_t piece;
  std::int64_t begin;
  std::int64_t end;
  int rows;
};

/// body(unit) for every unit of the block's job that is this warp's.
template <typename Body>
__device__ void for_each_unit(const Job& job, Body body) {
  const std::int64_t units = units_of(job);
  const std::int64_t warp = std::int64_t{blockIdx.x} * kWarps + threadIdx.x / kWarp;
  for (std::int64_t unit = warp; unit < units; unit += std::int64_t{gridDim.x} * kWarps) {
    body(Unit(job, unit));
  }
}

/// left - last_p last_q^T, for the rows of a unit at column j: the CPU's operations, in its order.
__device__ inline void take_off(const Job& job, const Unit& unit, std::int64_t j, float* left) {
  for (std::int64_t k = 0; k < job.rank; ++k) {
    const float q = job.last_q[k * job.matrix.columns + j];
#pragma unroll
    for (int r = 0; r < Policy::kRows; ++r) {
      if (r >= unit.rows) break;
      left[r] = __fmaf_rn(-job.last_p[(unit.row + r) * job.rank + k], q, left[r]);
    }
  }
}

using core::cuda::native;

/// As many blocks a job as its work needs, and no more in all than fill the device some times over.
inline dim3 grid_of(std::int64_t blocks, std::int64_t jobs) {
  const std::int64_t resident = resident_blocks(blocks * jobs, 4 * Policy::kBlocksPerProcessor);
  const std::int64_t each = std::max<std::int64_t>(1, std::min(blocks, resident));
  return dim3(static_cast<unsigned>(each), static_cast<unsigned>(jobs));
}

}  // namespace scalecom::kernels::cuda::lowrank
