// A batch, and its products: P = M Q as the memories take in the gradient, Q = M^T P.

#include <algorithm>
#include <vector>

#include "scalecom/kernels/cuda/lowrank/units.cuh"
#include "scalecom/kernels/cuda/number.cuh"

namespace scalecom::kernels::cuda::lowrank {
namespace {

constexpr unsigned kAllLanes = 0xffffffffU;

__device__ float warp_sum(float value) {
  for (int half = kWarp / 2; half > 0; half /= 2) {
    value = __fadd_rn(value, __shfl_down_sync(kAllLanes, value, half));
  }
  return value;
}

// Memories become (m - p q^T) + g; with `kFactors` factors at a time, p of the unit's piece.
template <typename Type, int kFactors>
__global__ void __launch_bounds__(Policy::kThreads)
    accumulate_kernel(const DeviceJob* d_jobs, const typename Type::Stored* d_grad,
                      float* d_partial, Flag* d_flag) {
  const DeviceJob& entry = d_jobs[blockIdx.y];
  const Job& job = entry.job;
  const std::int64_t columns = job.matrix.columns;
  const std::int64_t pieces = pieces_of(job);
  for_each_unit(job, [&](const Unit& unit) {
    for (std::int64_t first = 0; first < job.rank; first += kFactors) {
      float sums[Policy::kRows][kFactors] = {};
      for (std::int64_t j = unit.begin + threadIdx.x % kWarp; j < unit.end; j += kWarp) {
        float m[Policy::kRows] = {};
#pragma unroll
        for (int r = 0; r < Policy::kRows; ++r) {
          if (r < unit.rows) m[r] = job.matrix.memory[(unit.row + r) * columns + j];
        }
        if (first == 0) {
          take_off(job, unit, j, m);
#pragma unroll
          for (int r = 0; r < Policy::kRows; ++r) {
            if (r >= unit.rows) break;
            const std::int64_t at = (unit.row + r) * columns + j;
            const float sum = __fadd_rn(m[r], Type::load(d_grad[job.offset + at]));
            if (fabsf(sum) <= kMost) {
              m[r] = sum;
            } else {
              *d_flag = 1;
              if (!(fabsf(m[r]) <= kMost)) m[r] = copysignf(kMost, m[r]);
            }
            job.matrix.memory[at] = m[r];
          }
        }
#pragma unroll
        for (int k = 0; k < kFactors; ++k) {
          if (first + k >= job.rank) break;
          const float q = job.start_q[(first + k) * columns + j];
#pragma unroll
          for (int r = 0; r < Policy::kRows; ++r) sums[r][k] = __fmaf_rn(m[r], q, sums[r][k]);
        }
      }
#pragma unroll
      for (int r = 0; r < Policy::kRows; ++r) {
#pragma unroll
        for (int k = 0; k < kFactors; ++k) {
          const float sum = warp_sum(sums[r][k]);
          if (threadIdx.x % kWarp != 0 || r >= unit.rows || first + k >= job.rank) continue;
          const std::int64_t at = (unit.row + r) * job.rank + first + k;
          float* const out =
              pieces == 1 ? job.p
                          : d_partial + entry.partial + unit.piece * job.matrix.rows * job.rank;
          out[at] = sum;
        }
      }
    }
  });
}

// The factor that has `parts` partial sums is their sum, in order.
__device__ void add_parts(const float* d_partial, std::int64_t parts, std::int64_t size,
                          float* d_out) {
  const std::int64_t threads = std::int64_t{gridDim.x} * blockDim.x;
  for (std::int64_t i = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < size;
       i += threads) {
    float sum = d_partial[i];
    for (std::int64_t part = 1; part < parts; ++part) {
      sum = __fadd_rn(sum, d_partial[part * size + i]);
    }
    d_out[i] = sum;
  }
}

__global__ void add_pieces_kernel(const DeviceJob* d_jobs, const float* d_partial) {
  const DeviceJob& entry = d_jobs[blockIdx.y];
  const Job& job = entry.job;
  if (pieces_of(job) == 1) return;
  add_parts(d_partial + entry.partial, pieces_of(job), job.matrix.rows * job.rank, job.p);
}

__global__ void add_row_blocks_kernel(const DeviceJob* d_jobs, const float* d_partial) {
  const DeviceJob& entry = d_jobs[blockIdx.y];
  const Job& job = entry.job;
  if (row_blocks_of(job) == 1) return;
  add_parts(d_partial + entry.partial, row_blocks_of(job), job.matrix.columns * job.rank, job.q);
}

// q = m^T p: a thread a column, down a block of rows whose p is shared.
template <int kFactors>
__global__ void __launch_bounds__(Policy::kColumns)
    project_kernel(const DeviceJob* d_jobs, float* d_partial) {
  __shared__ float shared_p[Policy::kBlockRows][kFactors];
  const DeviceJob& entry = d_jobs[blockIdx.y];
  const Job& job = entry.job;
  const std::int64_t columns = job.matrix.columns;
  const std::int64_t stripes = parts_of(columns, Policy::kColumns);
  const std::int64_t blocks = row_blocks_of(job);
  for (std::int64_t tile = blockIdx.x; tile < blocks * stripes; tile += gridDim.x) {
    const std::int64_t block = tile / stripes;
    const std::int64_t j = tile % stripes * Policy::kColumns + threadIdx.x;
    const std::int64_t begin = block * Policy::kBlockRows;
    const int rows = static_cast<int>(min(Policy::kBlockRows, job.matrix.rows - begin));
    for (std::int64_t first = 0; first < job.rank; first += kFactors) {
      __syncthreads();
      for (int i = static_cast<int>(threadIdx.x); i < rows; i += Policy::kColumns) {
#pragma unroll
        for (int k = 0; k < kFactors; ++k) {
          shared_p[i][k] = first + k < job.rank ? job.p[(begin + i) * job.rank + first + k] : 0.0F;
        }
      }
      __syncthreads();
      if (j >= columns) continue;
      float sums[kFactors] = {};
      const float* const d_column = job.matrix.memory + begin * columns + j;
#pragma unroll 8
      for (int i = 0; i < rows; ++i) {
        const float m = d_column[i * columns];
#pragma unroll
        for (int k = 0; k < kFactors; ++k) sums[k] = __fmaf_rn(m, shared_p[i][k], sums[k]);
      }
      float* const out =
          blocks == 1 ? job.q : d_partial + entry.partial + block * columns * job.rank;
#pragma unroll
      for (int k = 0; k < kFactors; ++k) {
        if (first + k < job.rank) out[(first + k) * columns + j] = sums[k];
      }
    }
  }
}

__global__ void average_q_kernel(const DeviceJob* d_jobs, float factor, Flag* d_flag) {
  constexpr float kMostSent = 3.402823466e38F / 2;
  const Job& job = d_jobs[blockIdx.y].job;
  const std::int64_t columns = job.matrix.columns;
  const std::int64_t threads = std::int64_t{gridDim.x} * blockDim.x;
  for (std::int64_t j = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x; j < columns;
       j += threads) {
    float sum = 0;
    for (std::int64_t k = 0; k < job.rank; ++k) {
      const float q = __fmul_rn(job.q[k * columns + j], factor);
      job.q[k * columns + j] = q;
      sum = __fadd_rn(sum, fabsf(q));
    }
    if (!(sum <= kMostSent)) *d_flag = 1;
  }
}

// Calls body(a number of factors that fit into registers, as a type).
template <int kFactors>
struct Together {
  static constexpr int kValue = kFactors;
};
template <typename Body>
void with_factors(std::int64_t rank, Body body) {
  if (rank == 1) {
    body(Together<1>());
  } else if (rank == 2) {
    body(Together<2>());
  } else {
    body(Together<4>());
  }
}

}  // namespace

Batch::Batch(std::span<const Job> jobs, const core::Stream& stream)
    : jobs_(static_cast<std::int64_t>(jobs.size())) {
  std::vector<DeviceJob> entries;
  std::int64_t doubles = 0;
  std::int64_t partial = 0;
  for (const Job& job : jobs) {
    rank_ = job.rank;
    entries.push_back({job, doubles, partial});
    doubles += job.rank * std::max(job.matrix.rows, job.matrix.columns);
    const std::int64_t pieces = pieces_of(job);
    const std::int64_t blocks = row_blocks_of(job);
    partial += job.rank * std::max(pieces > 1 ? pieces * job.matrix.rows : 0,
                                   blocks > 1 ? blocks * job.matrix.columns : 0);
    pieces_ = pieces_ || pieces > 1;
    blocks_ = blocks_ || blocks > 1;
    most_units_ = std::max(most_units_, units_of(job));
    most_tiles_ = std::max(most_tiles_, tiles_of(job));
  }
  d_jobs_ = core::Array<DeviceJob>(stream.device(), jobs_);
  d_doubles_ = core::Array<double>(stream.device(), doubles);
  d_partial_ = core::Array<float>(stream.device(), partial);
  core::cuda::copy(d_jobs_.data(), entries.data(),
                   jobs_ * static_cast<std::int64_t>(sizeof(DeviceJob)), stream);
  core::cuda::synchronize(stream);
}

void Batch::accumulate(const core::Buffer& grad, Flag* d_flag, const core::Stream& stream) {
  const core::cuda::DeviceScope scope(stream.device());
  const dim3 grid = grid_of(parts_of(most_units_, kWarps), jobs_);
  with_type(grad.dtype, [&](auto type) {
    using Type = decltype(type);
    with_factors(rank_, [&](auto together) {
      accumulate_kernel<Type, decltype(together)::kValue>
          <<<grid, Policy::kThreads, 0, native(stream)>>>(
              d_jobs_.data(), static_cast<const typename Type::Stored*>(grad.data),
              d_partial_.data(), d_flag);
    });
  });
  if (pieces_) {
    add_pieces_kernel<<<grid, Policy::kThreads, 0, native(stream)>>>(d_jobs_.data(),
                                                                     d_partial_.data());
  }
  core::cuda::check(cudaGetLastError(), "accumulate");
}

void Batch::project(const core::Stream& stream) {
  const core::cuda::DeviceScope scope(stream.device());
  const dim3 grid = grid_of(most_tiles_, jobs_);
  with_factors(rank_, [&](auto together) {
    project_kernel<decltype(together)::kValue>
        <<<grid, Policy::kColumns, 0, native(stream)>>>(d_jobs_.data(), d_partial_.data());
  });
  if (blocks_) {
    add_row_blocks_kernel<<<grid, Policy::kThreads, 0, native(stream)>>>(d_jobs_.data(),
                                                                         d_partial_.data());
  }
  core::cuda::check(cudaGetLastError(), "project");
}

void Batch::average_q(float factor, Flag* d_flag, const core::Stream& stream) {
  const core::cuda::DeviceScope scope(stream.device());
  average_q_kernel<<<grid_of(most_tiles_, jobs_), Policy::kThreads, 0, native(stream)>>>(
      d_jobs_.data(), factor, d_flag);
  core::cuda::check(cudaGetLastError(), "average_q");
}

}  // namespace scalecom::kernels::cuda::lowrank
