#include "scalecom/kernels/cuda/largest.h"

#include <cub/block/block_scan.cuh>

#include "scalecom/core/cuda/native.h"
#include "scalecom/kernels/cuda/grid.cuh"
#include "scalecom/kernels/cuda/number.cuh"
#include "scalecom/kernels/cuda/policy.h"

namespace scalecom::kernels::cuda {
namespace {

constexpr int kThreads = policy::Items::kThreads;
constexpr int kPerThread = static_cast<int>(kCountedTogether / kThreads);
static_assert(kPerThread * kThreads == kCountedTogether);

using Scan = cub::BlockScan<std::uint32_t, kThreads>;

using core::cuda::native;

__device__ std::int64_t thread_index() {
  return std::int64_t{blockIdx.x} * kThreads + static_cast<std::int64_t>(threadIdx.x);
}

__global__ void __launch_bounds__(kThreads)
    gather_strided_kernel(const float* d_numbers, std::int64_t first, std::int64_t stride,
                          std::int64_t count, float* d_out) {
  const std::int64_t i = thread_index();
  if (i < count) d_out[i] = d_numbers[first + i * stride];
}

__global__ void __launch_bounds__(kThreads)
    gather_kernel(const float* d_numbers, const std::uint32_t* d_positions, std::int64_t count,
                  float* d_out) {
  const std::int64_t i = thread_index();
  if (i < count) d_out[i] = d_numbers[d_positions[i]];
}

// A bit for each of a thread's numbers that reaches `least`; they lie side by side, so that the
// order of threads is that of positions.
__device__ std::uint32_t reaching(const float* d_numbers, std::int64_t begin, std::int64_t length,
                                  std::uint32_t least) {
  std::uint32_t bits = 0;
#pragma unroll
  for (int e = 0; e < kPerThread; ++e) {
    const bool reaches = begin + e < length && magnitude_bits(d_numbers[begin + e]) >= least;
    bits |= (reaches ? 1U : 0U) << e;
  }
  return bits;
}

__device__ std::int64_t first_of_thread() {
  return std::int64_t{blockIdx.x} * kCountedTogether + std::int64_t{threadIdx.x} * kPerThread;
}

__global__ void __launch_bounds__(kThreads)
    count_from_kernel(const float* d_numbers, std::int64_t length, std::uint32_t least,
                      std::uint32_t* d_counts) {
  const std::uint32_t bits = reaching(d_numbers, first_of_thread(), length, least);
  __shared__ std::uint32_t total;
  if (threadIdx.x == 0) total = 0;
  __syncthreads();
  if (bits != 0) atomicAdd(&total, static_cast<std::uint32_t>(__popc(bits)));
  __syncthreads();
  if (threadIdx.x == 0) d_counts[blockIdx.x] = total;
}

__global__ void __launch_bounds__(kThreads)
    write_positions_kernel(const float* d_numbers, std::int64_t length, std::uint32_t least,
                           const std::uint32_t* d_starts, std::uint32_t* d_positions) {
  __shared__ typename Scan::TempStorage storage;
  const std::int64_t begin = first_of_thread();
  std::uint32_t bits = reaching(d_numbers, begin, length, least);
  std::uint32_t before = 0;
  Scan(storage).ExclusiveSum(static_cast<std::uint32_t>(__popc(bits)), before);
  std::uint32_t* d_next = d_positions + d_starts[blockIdx.x] + before;
  for (; bits != 0; bits &= bits - 1) {
    *d_next++ = static_cast<std::uint32_t>(begin + __ffs(static_cast<int>(bits)) - 1);
  }
}

}  // namespace

void gather_strided(const float* d_numbers, std::int64_t first, std::int64_t stride,
                    std::int64_t count, float* d_out, const core::Stream& stream) {
  if (count == 0) return;
  const core::cuda::DeviceScope scope(stream.device());
  gather_strided_kernel<<<blocks_for(count, kThreads), kThreads, 0, native(stream)>>>(
      d_numbers, first, stride, count, d_out);
  core::cuda::check(cudaGetLastError(), "gather_strided");
}

void gather(const float* d_numbers, const std::uint32_t* d_positions, std::int64_t count,
            float* d_out, const core::Stream& stream) {
  if (count == 0) return;
  const core::cuda::DeviceScope scope(stream.device());
  gather_kernel<<<blocks_for(count, kThreads), kThreads, 0, native(stream)>>>(
      d_numbers, d_positions, count, d_out);
  core::cuda::check(cudaGetLastError(), "gather");
}

void count_from(const float* d_numbers, std::int64_t length, std::int32_t least,
                std::uint32_t* d_counts, const core::Stream& stream) {
  if (length == 0) return;
  const core::cuda::DeviceScope scope(stream.device());
  count_from_kernel<<<blocks_for(length, kCountedTogether), kThreads, 0, native(stream)>>>(
      d_numbers, length, static_cast<std::uint32_t>(least), d_counts);
  core::cuda::check(cudaGetLastError(), "count_from");
}

void write_positions_from(const float* d_numbers, std::int64_t length, std::int32_t least,
                          const std::uint32_t* d_starts, std::uint32_t* d_positions,
                          const core::Stream& stream) {
  if (length == 0) return;
  const core::cuda::DeviceScope scope(stream.device());
  write_positions_kernel<<<blocks_for(length, kCountedTogether), kThreads, 0, native(stream)>>>(
      d_numbers, length, static_cast<std::uint32_t>(least), d_starts, d_positions);
  core::cuda::check(cudaGetLastError(), "write_positions_from");
}

}  // namespace scalecom::kernels::cuda
