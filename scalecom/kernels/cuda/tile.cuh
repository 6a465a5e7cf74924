#pragma once

#include "scalecom/kernels/cuda/entry.cuh"

/// Block-level passes over a tile's elements.
namespace scalecom::kernels::cuda {

/// `kWidth` consecutive elements from an address on, as fp32; 0 from the `valid`th on. More than
/// one are read as a vector where all are valid.
template <typename Type, int kWidth>
__device__ void load_group(const typename Type::Stored* from, int valid, float (&to)[kWidth]) {
  if constexpr (kWidth == 4) {
    if (valid >= kWidth) {
      const auto stored = *reinterpret_cast<const typename Type::Vector*>(from);
      to[0] = Type::load(stored.x);
      to[1] = Type::load(stored.y);
      to[2] = Type::load(stored.z);
      to[3] = Type::load(stored.w);
      return;
    }
  }
#pragma unroll
  for (int e = 0; e < kWidth; ++e) to[e] = e < valid ? Type::load(from[e]) : 0.0F;
}

template <int kWidth>
__device__ void store_group(float* to, int valid, const float (&from)[kWidth]) {
  if constexpr (kWidth == 4) {
    if (valid >= kWidth) {
      *reinterpret_cast<float4*>(to) = make_float4(from[0], from[1], from[2], from[3]);
      return;
    }
  }
#pragma unroll
  for (int e = 0; e < kWidth; ++e) {
    if (e < valid) to[e] = from[e];
  }
}

/// What is not finite in a group is taken as if its gradient were 0, which it becomes. The memory
/// at `d_memory` is still what it was.
template <typename Type, int kWidth>
__device__ void mend_group(const Pass& pass, typename Type::Stored* d_grad, const float* d_memory,
                           int valid, float (&m)[kWidth], float (&u)[kWidth]) {
#pragma unroll
  for (int e = 0; e < kWidth; ++e) {
    if (e >= valid || is_finite(u[e])) continue;
    m[e] = filtered(pass.step.filter, 0.0F, d_memory[e]);
    u[e] = to_send(pass, 0.0F, m[e]);
    d_grad[e] = 0;
  }
  set_flag(pass);
}

/// `m` becomes m', and `g` becomes u. The arrays they came from stay, but for a gradient that is
/// not finite.
template <typename Type, int kWidth>
__device__ void filter_group(const Pass& pass, typename Type::Stored* d_grad, const float* d_memory,
                             int valid, float (&g)[kWidth], float (&m)[kWidth]) {
  std::uint32_t largest = 0;
#pragma unroll
  for (int e = 0; e < kWidth; ++e) {
    m[e] = filtered(pass.step.filter, g[e], m[e]);
    g[e] = to_send(pass, g[e], m[e]);
    largest = max(largest, magnitude_bits(g[e]));
  }
  if (largest >= kInfinityBits) mend_group<Type, kWidth>(pass, d_grad, d_memory, valid, m, g);
}

template <typename Type>
__device__ bool takes_vectors(const typename Type::Stored* d_grad, const float* d_memory) {
  return reinterpret_cast<std::uintptr_t>(d_grad) % sizeof(typename Type::Vector) == 0 &&
         reinterpret_cast<std::uintptr_t>(d_memory) % sizeof(float4) == 0;
}

/// Calls visit(i, u) for groups of kWidth elements of a tile, i being the first's place in it.
/// Every thread of the block calls it equally often, in the same order: past the tile's end too,
/// where u is of no use. kUpdate: memory becomes m'; otherwise it is that already.
template <typename Type, bool kUpdate, int kThreads, int kUnroll, int kWidth, typename Visit>
__device__ void visit_groups(const Pass& pass, typename Type::Stored* d_grad, float* d_memory,
                             int elements, Visit visit) {
  for (int base = 0; base < elements; base += kThreads * kWidth * kUnroll) {
    float g[kUnroll][kWidth];
    float m[kUnroll][kWidth];
#pragma unroll
    for (int k = 0; k < kUnroll; ++k) {
      const int i = base + (k * kThreads + static_cast<int>(threadIdx.x)) * kWidth;
      load_group<Type, kWidth>(d_grad + i, elements - i, g[k]);
      load_group<Float32, kWidth>(d_memory + i, elements - i, m[k]);
    }
#pragma unroll
    for (int k = 0; k < kUnroll; ++k) {
      const int i = base + (k * kThreads + static_cast<int>(threadIdx.x)) * kWidth;
      if constexpr (kUpdate) {
        filter_group<Type, kWidth>(pass, d_grad + i, d_memory + i, elements - i, g[k], m[k]);
        store_group<kWidth>(d_memory + i, elements - i, m[k]);
      } else {
#pragma unroll
        for (int e = 0; e < kWidth; ++e) g[k][e] = to_send(pass, g[k][e], m[k][e]);
      }
      visit(i, g[k]);
    }
  }
}

/// The same for a whole tile, in vectors of 4 where the addresses allow it.
template <typename Type, bool kUpdate, int kThreads, int kUnroll, typename Visit>
__device__ void visit_tile(const Pass& pass, const Tile& tile, Visit visit) {
  auto* d_grad = gradient<Type>(pass, tile.grad);
  const auto elements = static_cast<int>(tile.elements);
  if (takes_vectors<Type>(d_grad, tile.d_memory)) {
    visit_groups<Type, kUpdate, kThreads, kUnroll, 4>(pass, d_grad, tile.d_memory, elements, visit);
  } else {
    visit_groups<Type, kUpdate, kThreads, 3 * kUnroll, 1>(pass, d_grad, tile.d_memory, elements,
                                                          visit);
  }
}

/// A dense slice's part of the message.
template <typename Type>
__device__ void load_dense(const Pass& pass, const DenseTile& tile) {
  const auto* d_grad = gradient<Type>(pass, tile.grad);
  float* d_out = pass.step.d_message + pass.tables.items + tile.place;
  for (std::int64_t i = threadIdx.x; i < tile.elements; i += blockDim.x) {
    const float value = __fmul_rn(Type::load(d_grad[i]), pass.dense_factor);
    d_out[i] = value;
    if (!is_finite(value)) set_flag(pass);
  }
}

}  // namespace scalecom::kernels::cuda
