#pragma once

#include <cuda_pipeline.h>

#include "scalecom/kernels/cuda/policy.h"
#include "scalecom/kernels/cuda/tile.cuh"

/// A tile whose m' and u lie in shared memory while entries of it are chosen and settled. It goes
/// through device memory once: read, and written when all is settled.
namespace scalecom::kernels::cuda {

class Stage {
 public:
  /// Bytes of shared memory for tiles of up to `elements`.
  __host__ __device__ static constexpr std::size_t bytes(int elements) {
    return 2 * sizeof(float4) * static_cast<std::size_t>((elements + 3) / 4);
  }

  __device__ Stage(void* shared, int most_elements)
      : m_(static_cast<float4*>(shared)), u_(m_ + (most_elements + 3) / 4) {}

  __device__ std::uint32_t key(int i) const { return magnitude_bits(u(i)); }

  /// Loads a tile's arrays and filters them. The block waits for all of it.
  template <typename Type, int kThreads>
  __device__ void load(const Pass& pass, const Tile& tile) {
    auto* d_grad = gradient<Type>(pass, tile.grad);
    const float* d_memory = tile.d_memory;
    const auto elements = static_cast<int>(tile.elements);
    copy<Float32, kThreads>(m_, d_memory, elements / 4);
    copy<Type, kThreads>(u_, d_grad, elements / 4);
    __pipeline_commit();
    filter_rest<Type, kThreads>(pass, d_grad, d_memory, elements / 4 * 4, elements);
    __pipeline_wait_prior(0);
    filter<Type, kThreads>(pass, d_grad, d_memory, elements / 4);
    __syncthreads();
  }

  /// Takes the entry at place `i` of the tile, as `item`. Nobody else touches that entry.
  __device__ void take(const Pass& pass, const Tile& tile, std::int64_t item, int i) {
    float& m = reinterpret_cast<float*>(m_)[i];
    const float sent = rounded_to(pass.step.values, u(i));
    pass.step.d_positions[item] = tile.begin + static_cast<std::uint32_t>(i);
    pass.step.d_message[item] = sent;
    pass.step.d_before[item] = m;
    m = __fmaf_rn(-pass.step.filter.beta, sent, m);
  }

  /// Writes the memory. The block has come together since the last take().
  template <typename Type, int kThreads>
  __device__ void store(const Tile& tile) const {
    const auto elements = static_cast<int>(tile.elements);
    const bool vectors = reinterpret_cast<std::uintptr_t>(tile.d_memory) % sizeof(float4) == 0;
    const int whole = vectors ? elements / 4 : 0;
#pragma unroll 4
    for (int v = static_cast<int>(threadIdx.x); v < whole; v += kThreads) {
      reinterpret_cast<float4*>(tile.d_memory)[v] = m_[v];
    }
    for (int i = 4 * whole + static_cast<int>(threadIdx.x); i < elements; i += kThreads) {
      tile.d_memory[i] = reinterpret_cast<const float*>(m_)[i];
    }
  }

 private:
  __device__ float u(int i) const {
    return reinterpret_cast<const float*>(u_)[i];
  }

  // Puts vectors of an array on their way, each to the place of its own number. They lie at a
  // vector's boundary, or are copied an element at a time.
  template <typename Type, int kThreads>
  __device__ static void copy(float4* to, const typename Type::Stored* d_from, int vectors) {
    using Vector = typename Type::Vector;
    using Stored = typename Type::Stored;
    if (reinterpret_cast<std::uintptr_t>(d_from) % sizeof(Vector) == 0) {
#pragma unroll 4
      for (int v = static_cast<int>(threadIdx.x); v < vectors; v += kThreads) {
        __pipeline_memcpy_async(&to[v], d_from + 4 * v, sizeof(Vector));
      }
      return;
    }
#pragma unroll 4
    for (int v = static_cast<int>(threadIdx.x); v < vectors; v += kThreads) {
      auto* element = reinterpret_cast<Stored*>(&to[v]);
#pragma unroll
      for (int e = 0; e < 4; ++e) {
        if constexpr (sizeof(Stored) == 4) {
          __pipeline_memcpy_async(element + e, d_from + 4 * v + e, sizeof(Stored));
        } else {
          element[e] = d_from[4 * v + e];  // too short for an asynchronous copy
        }
      }
    }
  }

  // Every thread filters what it has itself copied. A vector of gradients waits where its u goes.
  template <typename Type, int kThreads>
  __device__ void filter(const Pass& pass, typename Type::Stored* d_grad, const float* d_memory,
                         int vectors) {
    for (int v = static_cast<int>(threadIdx.x); v < vectors; v += kThreads) {
      float m[4];
      float g[4];
      load_group<Float32, 4>(reinterpret_cast<const float*>(&m_[v]), 4, m);
      load_group<Type, 4>(reinterpret_cast<const typename Type::Stored*>(&u_[v]), 4, g);
      filter_group<Type, 4>(pass, d_grad + 4 * v, d_memory + 4 * v, 4, g, m);
      m_[v] = make_float4(m[0], m[1], m[2], m[3]);
      u_[v] = make_float4(g[0], g[1], g[2], g[3]);
    }
  }

  template <typename Type, int kThreads>
  __device__ void filter_rest(const Pass& pass, typename Type::Stored* d_grad,
                              const float* d_memory, int begin, int elements) {
    for (int i = begin + static_cast<int>(threadIdx.x); i < elements; i += kThreads) {
      float m[1] = {d_memory[i]};
      float g[1] = {Type::load(d_grad[i])};
      filter_group<Type, 1>(pass, d_grad + i, d_memory + i, 1, g, m);
      set(i, m[0], g[0]);
    }
  }

  __device__ void set(int i, float m, float u) {
    reinterpret_cast<float*>(m_)[i] = m;
    reinterpret_cast<float*>(u_)[i] = u;
  }

  float4* m_;
  float4* u_;
};

/// A kernel is to stage tiles of up to `elements`, with `offsets` of their chunks: returns the
/// shared memory for it, which it is allowed. What is allowed is the same for all shapes, as other
/// threads may be about to launch the same kernel for another.
template <typename Kernel>
std::size_t allow_stage(Kernel* kernel, int elements, int offsets) {
  constexpr std::size_t kAllowedAnyway = 48 * 1024;
  constexpr std::size_t kMost = Stage::bytes(policy::FirstPass::kMostTileElements) +
                                sizeof(std::uint16_t) * policy::FirstPass::kMostTileChunks;
  const std::size_t bytes =
      Stage::bytes(elements) + sizeof(std::uint16_t) * static_cast<std::size_t>(offsets);
  if (bytes > kAllowedAnyway) {
    core::cuda::check(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                           static_cast<int>(kMost)),
                      "cudaFuncSetAttribute");
  }
  return bytes;
}

}  // namespace scalecom::kernels::cuda
