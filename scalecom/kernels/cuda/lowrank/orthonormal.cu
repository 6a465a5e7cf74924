// Factors that are made orthonormal, in double precision, a block each.

#include "scalecom/core/hash.h"
#include "scalecom/kernels/cuda/lowrank/units.cuh"

namespace scalecom::kernels::cuda::lowrank {
namespace {

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

}  // namespace

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

void Batch::orthonormalise_p(const core::Stream& stream) {
  const core::cuda::DeviceScope scope(stream.device());
  orthonormalise_p_kernel<<<static_cast<unsigned>(jobs_), Policy::kOrthonormalThreads, 0,
                            native(stream)>>>(d_jobs_.data(), d_doubles_.data());
  core::cuda::check(cudaGetLastError(), "orthonormalise_p");
}

}  // namespace scalecom::kernels::cuda::lowrank
