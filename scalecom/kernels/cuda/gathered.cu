#include "scalecom/kernels/cuda/gathered.h"

#include "scalecom/core/cuda/native.h"
#include "scalecom/kernels/cuda/chunks.cuh"
#include "scalecom/kernels/cuda/grid.cuh"
#include "scalecom/kernels/cuda/number.cuh"
#include "scalecom/kernels/cuda/policy.h"

namespace scalecom::kernels::cuda {
namespace {

using elementwise::Flag;
using Policy = policy::Items;

using core::cuda::native;

__device__ std::int64_t thread_index() {
  return std::int64_t{blockIdx.x} * Policy::kThreads + static_cast<std::int64_t>(threadIdx.x);
}

// A thread an entry. The entries of a rank are at different places, so none meets another.
__global__ void __launch_bounds__(Policy::kThreads)
    add_gathered_kernel(const GatheredPart* __restrict__ d_parts, int parts, std::int64_t items,
                        const std::byte* __restrict__ d_message, float factor,
                        float* __restrict__ d_sums, Flag* d_flag) {
  const std::int64_t item = thread_index();
  if (item >= items) return;
  const GatheredPart part =
      d_parts[last_not_above(parts, item, [&](int p) { return d_parts[p].first_item; })];
  const int bits = offset_bits(part.length);
  const std::int64_t i = item - part.first_item;
  const std::byte* d_offsets = d_message + part.first_byte;
  const std::uint32_t position = packed_offset(d_offsets, i, bits);
  const bool ascends = i == 0 || packed_offset(d_offsets, i - 1, bits) < position;
  if (!ascends || position >= part.length) {
    *d_flag = 1;
    return;
  }
  const float value = reinterpret_cast<const float*>(d_message)[item];
  float* const d_sum = d_sums + part.offset + position;
  const float sum = __fadd_rn(*d_sum, __fmul_rn(value, factor));
  *d_sum = sum;
  if (!is_finite(sum)) *d_flag = 1;
}

__global__ void flag_unless_zero_kernel(const float* d_number, Flag* d_flag) {
  if (*d_number != 0.0F) *d_flag = 1;
}

__global__ void __launch_bounds__(Policy::kThreads)
    fill_nan_if_kernel(const Flag* d_flag, float* d_numbers, std::int64_t count) {
  if (*d_flag == 0) return;
  const std::int64_t threads = std::int64_t{gridDim.x} * Policy::kThreads;
  for (std::int64_t i = thread_index(); i < count; i += threads) {
    d_numbers[i] = __uint_as_float(kQuietNanBits);
  }
}

__global__ void decide_sent_kernel(const Flag* d_flag, std::int32_t* d_sent,
                                   std::int32_t* d_refused) {
  const bool refused = *d_flag != 0;
  *d_sent = refused ? 0 : 1;
  *d_refused = refused ? 1 : 0;
}

}  // namespace

void add_gathered(const GatheredPart* d_parts, std::int64_t parts, std::int64_t items,
                  const std::byte* d_message, float factor, float* d_sums, Flag* d_flag,
                  const core::Stream& stream) {
  if (items == 0) return;
  const core::cuda::DeviceScope scope(stream.device());
  add_gathered_kernel<<<blocks_for(items, Policy::kThreads), Policy::kThreads, 0, native(stream)>>>(
      d_parts, static_cast<int>(parts), items, d_message, factor, d_sums, d_flag);
  core::cuda::check(cudaGetLastError(), "add_gathered");
}

void flag_unless_zero(const float* d_number, Flag* d_flag, const core::Stream& stream) {
  const core::cuda::DeviceScope scope(stream.device());
  flag_unless_zero_kernel<<<1, 1, 0, native(stream)>>>(d_number, d_flag);
  core::cuda::check(cudaGetLastError(), "flag_unless_zero");
}

void fill_nan_if(const Flag* d_flag, float* d_numbers, std::int64_t count,
                 const core::Stream& stream) {
  if (count == 0) return;
  const core::cuda::DeviceScope scope(stream.device());
  const std::int64_t work = blocks_for(count, Policy::kThreads);
  fill_nan_if_kernel<<<resident_blocks(work, policy::Elementwise::kBlocksPerProcessor),
                       Policy::kThreads, 0, native(stream)>>>(d_flag, d_numbers, count);
  core::cuda::check(cudaGetLastError(), "fill_nan_if");
}

void decide_sent(const Flag* d_flag, std::int32_t* d_sent, std::int32_t* d_refused,
                 const core::Stream& stream) {
  const core::cuda::DeviceScope scope(stream.device());
  decide_sent_kernel<<<1, 1, 0, native(stream)>>>(d_flag, d_sent, d_refused);
  core::cuda::check(cudaGetLastError(), "decide_sent");
}

}  // namespace scalecom::kernels::cuda
