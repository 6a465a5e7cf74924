#include "scalecom/kernels/cuda/lowrank.h"

#include <algorithm>
#include <vector>

#include "scalecom/core/cuda/native.h"
#include "scalecom/core/hash.h"
#include "scalecom/kernels/cuda/grid.cuh"
#include "scalecom/kernels/cuda/number.cuh"
#include "scalecom/kernels/cuda/policy.h"

namespace scalecom::kernels::cuda::lowrank {
namespace {

using Policy = policy::LowRank;

constexpr int kWarp = 32;
constexpr int kWarps = Policy::kThreads / kWarp;
constexpr unsigned kAllLanes = 0xffffffffU;

__host__ __device__ std::int64_t parts_of(std::int64_t whole, std::int64_t part) {
  return (whole + part - 1) / part;
}
__host__ __device__ std::int64_t pieces_of(const Job& job) {
  return parts_of(job.matrix.columns, Policy::kPiece);
}
__host__ __device__ std::int64_t row_blocks_of(const Job& job) {
  return parts_of(job.matrix.rows, Policy::kBlockRows);
}
// Groups of rows times pieces of columns: a warp's work.
__host__ __device__ std::int64_t units_of(const Job& job) {
  return parts_of(job.matrix.rows, Policy::kRows) * pieces_of(job);
}
// Blocks of rows times stripes of columns: a block's work.
__host__ __device__ std::int64_t tiles_of(const Job& job) {
  return row_blocks_of(job) * parts_of(job.matrix.columns, Policy::kColumns);
}

// The rows and columns of a unit.
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

// body(unit) for every unit of the block's job that is this warp's.
template <typename Body>
__device__ void for_each_unit(const Job& job, Body body) {
  const std::int64_t units = units_of(job);
  const std::int64_t warp = std::int64_t{blockIdx.x} * kWarps + threadIdx.x / kWarp;
  for (std::int64_t unit = warp; unit < units; unit += std::int64_t{gridDim.x} * kWarps) {
    body(Unit(job, unit));
  }
}

__device__ float warp_sum(float value) {
  for (int half = kWarp / 2; half > 0; half /= 2) {
    value = __fadd_rn(value, __shfl_down_sync(kAllLanes, value, half));
  }
  return value;
}

// left - last_p last_q^T, for the rows of a unit at column j: the CPU's operations, in its order.
__device__ void take_off(const Job& job, const Unit& unit, std::int64_t j, float* left) {
  for (std::int64_t k = 0; k < job.rank; ++k) {
    const float q = job.last_q[k * job.matrix.columns + j];
#pragma unroll
    for (int r = 0; r < Policy::kRows; ++r) {
      if (r >= unit.rows) break;
      left[r] = __fmaf_rn(-job.last_p[(unit.row + r) * job.rank + k], q, left[r]);
    }
  }
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
            if (is_finite(sum)) {
              m[r] = sum;
            } else {
              *d_flag = 1;
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
  constexpr float kMost = 3.402823466e38F / 2;
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
    if (!(sum <= kMost)) *d_flag = 1;
  }
}

template <typename Type>
__global__ void __launch_bounds__(Policy::kThreads)
    expand_kernel(const DeviceJob* d_jobs, typename Type::Stored* d_grad, const Flag* d_flag) {
  const Job& job = d_jobs[blockIdx.y].job;
  const std::int64_t columns = job.matrix.columns;
  const bool refused = *d_flag != 0;
  for_each_unit(job, [&](const Unit& unit) {
    for (std::int64_t j = unit.begin + threadIdx.x % kWarp; j < unit.end; j += kWarp) {
      float sums[Policy::kRows] = {};
      for (std::int64_t k = 0; k < job.rank; ++k) {
        const float q = job.q[k * columns + j];
#pragma unroll
        for (int r = 0; r < Policy::kRows; ++r) {
          if (r >= unit.rows) break;
          sums[r] = __fmaf_rn(job.p[(unit.row + r) * job.rank + k], q, sums[r]);
        }
      }
#pragma unroll
      for (int r = 0; r < Policy::kRows; ++r) {
        if (r >= unit.rows) break;
        d_grad[job.offset + (unit.row + r) * columns + j] =
            Type::store(refused ? __uint_as_float(kQuietNanBits) : sums[r]);
      }
    }
  });
}

// The last factors become those of this step; or 0, where nothing is kept.
__device__ void keep(const Job& job, bool kept) {
  const std::int64_t p_size = job.matrix.rows * job.rank;
  const std::int64_t size = p_size + job.matrix.columns * job.rank;
  const std::int64_t threads = std::int64_t{gridDim.x} * blockDim.x;
  for (std::int64_t i = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < size;
       i += threads) {
    if (i < p_size) {
      job.last_p[i] = kept ? job.p[i] : 0.0F;
    } else {
      job.last_q[i - p_size] = kept ? job.q[i - p_size] : 0.0F;
    }
  }
}

__global__ void keep_kernel(const DeviceJob* d_jobs, const Flag* d_flag) {
  keep(d_jobs[blockIdx.y].job, *d_flag == 0);
}

__global__ void forget_kernel(const DeviceJob* d_jobs) {
  keep(d_jobs[blockIdx.y].job, false);
}

__global__ void __launch_bounds__(Policy::kThreads) settle_kernel(const DeviceJob* d_jobs) {
  const Job& job = d_jobs[blockIdx.y].job;
  const std::int64_t columns = job.matrix.columns;
  for_each_unit(job, [&](const Unit& unit) {
    for (std::int64_t j = unit.begin + threadIdx.x % kWarp; j < unit.end; j += kWarp) {
      float m[Policy::kRows] = {};
#pragma unroll
      for (int r = 0; r < Policy::kRows; ++r) {
        if (r < unit.rows) m[r] = job.matrix.memory[(unit.row + r) * columns + j];
      }
      take_off(job, unit, j, m);
#pragma unroll
      for (int r = 0; r < Policy::kRows; ++r) {
        if (r < unit.rows) job.matrix.memory[(unit.row + r) * columns + j] = m[r];
      }
    }
  });
}

// Vectors of doubles, worked on by one block.
class GramSchmidt {
 public:
  __device__ GramSchmidt(double* d_vectors, std::int64_t length)
      : d_vectors_(d_vectors), length_(length) {}

  __device__ double* vector(std::int64_t k) const { return d_vectors_ + k * length_; }

  // As on the CPU: each is cleaned twice of those before it; what then is only rounding becomes 0.
  __device__ void run(std::int64_t count) const {
    constexpr double kDependent = 1e-10;
    for (std::int64_t k = 0; k < count; ++k) {
      const double before = sqrt(product(vector(k), vector(k)));
      for (int round = 0; round < 2; ++round) {
        for (std::int64_t other = 0; other < k; ++other) {
          const double along = product(vector(other), vector(k));
          for_each([&](std::int64_t i) { vector(k)[i] -= along * vector(other)[i]; });
        }
      }
      const double after = sqrt(product(vector(k), vector(k)));
      const double factor = after > kDependent * before ? 1 / after : 0;
      for_each([&](std::int64_t i) { vector(k)[i] *= factor; });
    }
  }

  // body(i) for every i, and all see what it wrote.
  template <typename Body>
  __device__ void for_each(Body body) const {
    for (std::int64_t i = threadIdx.x; i < length_; i += Policy::kOrthonormalThreads) body(i);
    __syncthreads();
  }

 private:
  __device__ double product(const double* a, const double* b) const {
    __shared__ double sums[Policy::kOrthonormalThreads];
    double sum = 0;
    for (std::int64_t i = threadIdx.x; i < length_; i += Policy::kOrthonormalThreads) {
      sum += a[i] * b[i];
    }
    sums[threadIdx.x] = sum;
    for (int half = Policy::kOrthonormalThreads / 2; half > 0; half /= 2) {
      __syncthreads();
      if (static_cast<int>(threadIdx.x) < half) sums[threadIdx.x] += sums[threadIdx.x + half];
    }
    __syncthreads();
    const double all = sums[0];
    __syncthreads();  // before the next product writes
    return all;
  }

  double* d_vectors_;
  std::int64_t length_;
};

__global__ void __launch_bounds__(Policy::kOrthonormalThreads)
    orthonormalise_p_kernel(const DeviceJob* d_jobs, double* d_doubles) {
  const DeviceJob& entry = d_jobs[blockIdx.x];
  const Job& job = entry.job;
  const GramSchmidt vectors(d_doubles + entry.doubles, job.matrix.rows);
  for (std::int64_t k = 0; k < job.rank; ++k) {
    vectors.for_each([&](std::int64_t i) { vectors.vector(k)[i] = job.p[i * job.rank + k]; });
  }
  vectors.run(job.rank);
  for (std::int64_t k = 0; k < job.rank; ++k) {
    vectors.for_each([&](std::int64_t i) {
      job.p[i * job.rank + k] = static_cast<float>(vectors.vector(k)[i]);
    });
  }
}

__device__ void store_q(const Job& job, const GramSchmidt& vectors) {
  for (std::int64_t k = 0; k < job.rank; ++k) {
    vectors.for_each([&](std::int64_t j) {
      job.start_q[k * job.matrix.columns + j] = static_cast<float>(vectors.vector(k)[j]);
    });
  }
}

__global__ void __launch_bounds__(Policy::kOrthonormalThreads)
    adopt_q_kernel(const DeviceJob* d_jobs, double* d_doubles) {
  const DeviceJob& entry = d_jobs[blockIdx.x];
  const Job& job = entry.job;
  const std::int64_t columns = job.matrix.columns;
  const GramSchmidt vectors(d_doubles + entry.doubles, columns);
  bool any = false;
  for (std::int64_t k = 0; k < job.rank; ++k) {
    int found = 0;
    for (std::int64_t j = threadIdx.x; j < columns; j += Policy::kOrthonormalThreads) {
      if (job.last_q[k * columns + j] != 0) found = 1;
    }
    const bool fresh = __syncthreads_or(found) != 0;
    any = any || fresh;
    const float* const from = (fresh ? job.last_q : job.start_q) + k * columns;
    vectors.for_each([&](std::int64_t j) { vectors.vector(k)[j] = from[j]; });
  }
  if (!any) return;
  vectors.run(job.rank);
  store_q(job, vectors);
}

// In (0, 1), from 53 bits of a counter's hash.
__device__ double uniform(std::uint64_t seed, std::uint64_t counter) {
  return (static_cast<double>(core::combine(seed, counter) >> 11) + 0.5) * 0x1p-53;
}

// Of the CPU's numbers, but for the last bits of logarithms and cosines.
__global__ void __launch_bounds__(Policy::kOrthonormalThreads)
    draw_q_kernel(const DeviceJob* d_jobs, double* d_doubles, std::uint64_t batch_seed) {
  const DeviceJob& entry = d_jobs[blockIdx.x];
  const Job& job = entry.job;
  const std::uint64_t seed = core::combine(batch_seed, job.key);
  const GramSchmidt vectors(d_doubles + entry.doubles, job.matrix.columns);
  const std::int64_t count = job.rank * job.matrix.columns;
  for (std::int64_t i = 2 * static_cast<std::int64_t>(threadIdx.x); i < count;
       i += 2 * Policy::kOrthonormalThreads) {
    const auto counter = static_cast<std::uint64_t>(i);
    const double radius = sqrt(-2 * log(uniform(seed, counter)));
    double sine = 0;
    double cosine = 0;
    sincospi(2 * uniform(seed, counter + 1), &sine, &cosine);
    vectors.vector(0)[i] = radius * cosine;
    if (i + 1 < count) vectors.vector(0)[i + 1] = radius * sine;
  }
  __syncthreads();
  vectors.run(job.rank);
  store_q(job, vectors);
}

using core::cuda::native;

// As many blocks a job as its work needs, and no more in all than fill the device some times over.
dim3 grid_of(std::int64_t blocks, std::int64_t jobs) {
  const std::int64_t resident = resident_blocks(blocks * jobs, 4 * Policy::kBlocksPerProcessor);
  const std::int64_t each = std::max<std::int64_t>(1, std::min(blocks, resident));
  return dim3(static_cast<unsigned>(each), static_cast<unsigned>(jobs));
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

void Batch::draw_q(std::uint64_t seed, const core::Stream& stream) {
  const core::cuda::DeviceScope scope(stream.device());
  draw_q_kernel<<<static_cast<unsigned>(jobs_), Policy::kOrthonormalThreads, 0, native(stream)>>>(
      d_jobs_.data(), d_doubles_.data(), seed);
  core::cuda::check(cudaGetLastError(), "draw_q");
}

void Batch::adopt_q(const core::Stream& stream) {
  const core::cuda::DeviceScope scope(stream.device());
  adopt_q_kernel<<<static_cast<unsigned>(jobs_), Policy::kOrthonormalThreads, 0, native(stream)>>>(
      d_jobs_.data(), d_doubles_.data());
  core::cuda::check(cudaGetLastError(), "adopt_q");
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

void Batch::orthonormalise_p(const core::Stream& stream) {
  const core::cuda::DeviceScope scope(stream.device());
  orthonormalise_p_kernel<<<static_cast<unsigned>(jobs_), Policy::kOrthonormalThreads, 0,
                            native(stream)>>>(d_jobs_.data(), d_doubles_.data());
  core::cuda::check(cudaGetLastError(), "orthonormalise_p");
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

void Batch::expand(const core::Buffer& grad, const Flag* d_flag, const core::Stream& stream) {
  const core::cuda::DeviceScope scope(stream.device());
  const dim3 grid = grid_of(parts_of(most_units_, kWarps), jobs_);
  with_type(grad.dtype, [&](auto type) {
    using Type = decltype(type);
    expand_kernel<Type><<<grid, Policy::kThreads, 0, native(stream)>>>(
        d_jobs_.data(), static_cast<typename Type::Stored*>(grad.data), d_flag);
  });
  keep_kernel<<<grid, Policy::kThreads, 0, native(stream)>>>(d_jobs_.data(), d_flag);
  core::cuda::check(cudaGetLastError(), "expand");
}

void Batch::settle(const core::Stream& stream) {
  const core::cuda::DeviceScope scope(stream.device());
  const dim3 grid = grid_of(parts_of(most_units_, kWarps), jobs_);
  settle_kernel<<<grid, Policy::kThreads, 0, native(stream)>>>(d_jobs_.data());
  forget_kernel<<<grid, Policy::kThreads, 0, native(stream)>>>(d_jobs_.data());
  core::cuda::check(cudaGetLastError(), "settle");
}

}  // namespace scalecom::kernels::cuda::lowrank
