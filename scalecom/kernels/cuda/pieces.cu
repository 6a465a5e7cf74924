#include "scalecom/kernels/cuda/pieces.h"

#include "scalecom/core/cuda/native.h"
#include "scalecom/kernels/cuda/grid.cuh"
#include "scalecom/kernels/cuda/number.cuh"
#include "scalecom/kernels/cuda/policy.h"

namespace scalecom::kernels::cuda {
namespace {

using Policy = policy::Elementwise;

template <typename Type>
__global__ void __launch_bounds__(Policy::kThreads)
    load_kernel(const Piece* d_tiles, const typename Type::Stored* d_grad, float factor,
                float* d_pieces) {
  const Piece tile = d_tiles[blockIdx.x];
#pragma unroll Policy::kUnroll
  for (std::int64_t i = threadIdx.x; i < tile.count; i += Policy::kThreads) {
    d_pieces[tile.in_pieces + i] = __fmul_rn(Type::load(d_grad[tile.in_gradient + i]), factor);
  }
}

template <typename Type>
__global__ void __launch_bounds__(Policy::kThreads)
    store_kernel(const Piece* d_tiles, const float* d_pieces, typename Type::Stored* d_grad,
                 const Flag* d_flag) {
  const Piece tile = d_tiles[blockIdx.x];
  const bool spoilt = *d_flag != 0;
#pragma unroll Policy::kUnroll
  for (std::int64_t i = threadIdx.x; i < tile.count; i += Policy::kThreads) {
    const float value = spoilt ? __uint_as_float(kQuietNanBits) : d_pieces[tile.in_pieces + i];
    d_grad[tile.in_gradient + i] = Type::store(value);
  }
}

__global__ void __launch_bounds__(Policy::kThreads)
    mark_kernel(const Flag* d_flag, float* d_numbers, std::int64_t stride, std::int64_t count) {
  const float value = *d_flag != 0 ? 1.0F : 0.0F;
  for (std::int64_t i = threadIdx.x; i < count; i += Policy::kThreads) {
    d_numbers[i * stride] = value;
  }
}

__global__ void spoil_kernel(const float* d_mark, float* d_number) {
  if (*d_mark != 0.0F) *d_number = __uint_as_float(kQuietNanBits);
}

using core::cuda::native;

}  // namespace

void load_pieces(std::span<const Piece> d_tiles, const void* d_grad, core::DType dtype,
                 float factor, float* d_pieces, const core::Stream& stream) {
  if (d_tiles.empty()) return;
  const core::cuda::DeviceScope scope(stream.device());
  with_type(dtype, [&](auto type) {
    using Type = decltype(type);
    load_kernel<Type>
        <<<static_cast<unsigned>(d_tiles.size()), Policy::kThreads, 0, native(stream)>>>(
            d_tiles.data(), static_cast<const typename Type::Stored*>(d_grad), factor, d_pieces);
  });
  core::cuda::check(cudaGetLastError(), "load_pieces");
}

void store_pieces(std::span<const Piece> d_tiles, const float* d_pieces, void* d_grad,
                  core::DType dtype, const Flag* d_flag, const core::Stream& stream) {
  if (d_tiles.empty()) return;
  const core::cuda::DeviceScope scope(stream.device());
  with_type(dtype, [&](auto type) {
    using Type = decltype(type);
    store_kernel<Type>
        <<<static_cast<unsigned>(d_tiles.size()), Policy::kThreads, 0, native(stream)>>>(
            d_tiles.data(), d_pieces, static_cast<typename Type::Stored*>(d_grad), d_flag);
  });
  core::cuda::check(cudaGetLastError(), "store_pieces");
}

void mark(const Flag* d_flag, float* d_numbers, std::int64_t stride, std::int64_t count,
          const core::Stream& stream) {
  const core::cuda::DeviceScope scope(stream.device());
  mark_kernel<<<1, Policy::kThreads, 0, native(stream)>>>(d_flag, d_numbers, stride, count);
  core::cuda::check(cudaGetLastError(), "mark");
}

void spoil(const float* d_mark, float* d_number, const core::Stream& stream) {
  const core::cuda::DeviceScope scope(stream.device());
  spoil_kernel<<<1, 1, 0, native(stream)>>>(d_mark, d_number);
  core::cuda::check(cudaGetLastError(), "spoil");
}

}  // namespace scalecom::kernels::cuda
