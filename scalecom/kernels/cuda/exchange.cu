#include <algorithm>

#include "scalecom/core/cuda/check.h"
#include "scalecom/core/cuda/native.h"
#include "scalecom/core/error.h"
#include "scalecom/core/text.h"
#include "scalecom/kernels/cuda/exchange.h"
#include "scalecom/kernels/cuda/policy.h"

namespace scalecom::kernels::cuda {
namespace {

using Policy = policy::Exchange;

struct Batch {
  Copy copies[Policy::kCopies];
};

template <int kMost>
struct Parts {
  const float* d_parts[kMost];
};

__device__ std::int64_t first_index() {
  return static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
}

__device__ std::int64_t stride() {
  return static_cast<std::int64_t>(gridDim.x) * blockDim.x;
}

template <typename Unit>
__device__ void copy_units(const Unit* d_from, Unit* d_to, std::int64_t units) {
  std::int64_t i = first_index();
  for (; i + (Policy::kUnroll - 1) * stride() < units; i += Policy::kUnroll * stride()) {
    Unit held[Policy::kUnroll];
#pragma unroll
    for (int k = 0; k < Policy::kUnroll; ++k) held[k] = d_from[i + k * stride()];
#pragma unroll
    for (int k = 0; k < Policy::kUnroll; ++k) d_to[i + k * stride()] = held[k];
  }
  for (; i < units; i += stride()) d_to[i] = d_from[i];
}

/// In units as large as both ends allow, which are equally far from a boundary of Unit; the bytes
/// before the first and after the last boundary are one block's.
template <typename Unit>
__device__ void copy_aligned(const Copy& copy) {
  constexpr auto kUnit = static_cast<std::int64_t>(sizeof(Unit));
  const auto past = static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(copy.d_to) % kUnit);
  const std::int64_t to_boundary = past == 0 ? 0 : kUnit - past;
  const std::int64_t head = to_boundary < copy.bytes ? to_boundary : copy.bytes;
  const std::int64_t units = (copy.bytes - head) / kUnit;
  const std::int64_t tail_begin = head + units * kUnit;
  copy_units(reinterpret_cast<const Unit*>(copy.d_from + head),
             reinterpret_cast<Unit*>(copy.d_to + head), units);
  if (blockIdx.x != 0) return;
  const std::int64_t t = threadIdx.x;
  if (t < head) copy.d_to[t] = copy.d_from[t];
  if (t < copy.bytes - tail_begin) copy.d_to[tail_begin + t] = copy.d_from[tail_begin + t];
}

__global__ void __launch_bounds__(Policy::kThreads)
    copy_batch(const __grid_constant__ Batch batch) {
  const Copy& copy = batch.copies[blockIdx.y];
  const std::uintptr_t apart =
      reinterpret_cast<std::uintptr_t>(copy.d_from) ^ reinterpret_cast<std::uintptr_t>(copy.d_to);
  if (apart % sizeof(uint4) == 0) {
    copy_aligned<uint4>(copy);
  } else if (apart % sizeof(std::uint32_t) == 0) {
    copy_aligned<std::uint32_t>(copy);
  } else {
    copy_aligned<std::uint8_t>(copy);
  }
}

template <int kMost>
__global__ void __launch_bounds__(Policy::kThreads)
    sum_parts(const __grid_constant__ Parts<kMost> parts, int count_of_parts, float* d_out,
              std::int64_t count) {
  for (std::int64_t i = first_index(); i < count; i += stride()) {
    float sum = parts.d_parts[0][i];
#pragma unroll 8
    for (int part = 1; part < count_of_parts; ++part) {
      sum = __fadd_rn(sum, parts.d_parts[part][i]);
    }
    d_out[i] = sum;
  }
}

unsigned blocks_for(std::int64_t units, std::int64_t units_a_thread, std::int64_t most) {
  const std::int64_t a_block = Policy::kThreads * units_a_thread;
  const std::int64_t wanted = (units + a_block - 1) / a_block;
  return static_cast<unsigned>(
      std::clamp<std::int64_t>(wanted, 1, std::max<std::int64_t>(most, 1)));
}

using core::cuda::native;

template <int kMost>
void launch_sum(std::span<const float* const> d_parts, float* d_out, std::int64_t count,
                const core::Stream& stream) {
  Parts<kMost> parts{};
  std::copy(d_parts.begin(), d_parts.end(), parts.d_parts);
  sum_parts<<<blocks_for(count, 1, Policy::kBlocks), Policy::kThreads, 0, native(stream)>>>(
      parts, static_cast<int>(d_parts.size()), d_out, count);
}

}  // namespace

void copy_all(std::span<const Copy> copies, const core::Stream& stream) {
  const core::cuda::DeviceScope scope(stream.device());
  while (!copies.empty()) {
    const auto now = copies.first(std::min<std::size_t>(copies.size(), Policy::kCopies));
    copies = copies.subspan(now.size());
    Batch batch{};
    std::copy(now.begin(), now.end(), batch.copies);
    std::int64_t longest = 0;
    for (const Copy& copy : now) longest = std::max(longest, copy.bytes);
    const auto messages = static_cast<unsigned>(now.size());
    const unsigned blocks =
        blocks_for(longest, Policy::kUnroll * static_cast<std::int64_t>(sizeof(uint4)),
                   Policy::kBlocks / static_cast<std::int64_t>(messages));
    copy_batch<<<dim3(blocks, messages), Policy::kThreads, 0, native(stream)>>>(batch);
    core::cuda::check(cudaGetLastError(), "copy_all");
  }
}

void sum_in_order(std::span<const float* const> d_parts, float* d_out, std::int64_t count,
                  const core::Stream& stream) {
  if (count == 0) return;
  if (d_parts.size() > static_cast<std::size_t>(kMostParts)) {
    throw core::UsageError(core::concat("[cuda] a sum of ", d_parts.size(),
                                        " arrays on a GPU; it takes ", kMostParts, " at most"));
  }
  const core::cuda::DeviceScope scope(stream.device());
  if (d_parts.size() <= static_cast<std::size_t>(Policy::kFewParts)) {
    launch_sum<Policy::kFewParts>(d_parts, d_out, count, stream);
  } else {
    launch_sum<kMostParts>(d_parts, d_out, count, stream);
  }
  core::cuda::check(cudaGetLastError(), "sum_in_order");
}

}  // namespace scalecom::kernels::cuda
