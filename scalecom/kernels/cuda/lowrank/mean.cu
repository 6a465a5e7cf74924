// The mean that factors make, and what it leaves in the memories.

#include "scalecom/kernels/cuda/lowrank/units.cuh"
#include "scalecom/kernels/cuda/number.cuh"

namespace scalecom::kernels::cuda::lowrank {
namespace {

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

}  // namespace

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
