#pragma once

#include <cuda_bf16.h>

#include <cstdint>

#include "scalecom/core/cuda/native.h"
#include "scalecom/core/cuda/runtime.h"
#include "scalecom/core/stream.h"
#include "train/models/together/cuda/places.h"

/// How the kernels of this folder move numbers: 8 channels of a place at once, 16 bytes.
namespace train::models::together::cuda {

constexpr int kThreads = 256;
constexpr int kChannels = 8;  // of a vector

using Floats = float[kChannels];

__device__ inline void unpack(const uint4& vector, Floats& out) {
  const auto* const pairs = reinterpret_cast<const __nv_bfloat162*>(&vector);
#pragma unroll
  for (int i = 0; i < kChannels / 2; ++i) {
    const float2 pair = __bfloat1622float2(pairs[i]);
    out[2 * i] = pair.x;
    out[2 * i + 1] = pair.y;
  }
}

__device__ inline uint4 pack(const Floats& values) {
  uint4 vector;
  auto* const pairs = reinterpret_cast<__nv_bfloat162*>(&vector);
#pragma unroll
  for (int i = 0; i < kChannels / 2; ++i) {
    pairs[i] = __floats2bfloat162_rn(values[2 * i], values[2 * i + 1]);
  }
  return vector;
}

__device__ inline void load(const float* from, Floats& out) {
#pragma unroll
  for (int i = 0; i < kChannels; ++i) out[i] = from[i];
}

/// Which channels a thread of a block works on, in all the rows that it sees: so that what belongs
/// to a channel stays in registers.
struct Seat {
  __device__ explicit Seat(int channels)
      : vectors(channels / kChannels),
        vector(static_cast<int>(threadIdx.x) % vectors),
        row(static_cast<int>(threadIdx.x) / vectors),
        rows(kThreads / vectors) {}

  __device__ bool is_taken() const { return row < rows; }
  __device__ int channel() const { return vector * kChannels; }

  int vectors;  // of a row
  int vector;
  int row;   // of those that the block sees at once
  int rows;  // that it sees at once
};

/// Adds up what the seats of a block have for each channel, in a fixed order, into `sums`. Every
/// thread calls it.
__device__ inline void add_up(const Seat& seat, const Floats& values, int channels,
                              float* __restrict__ sums) {
  __shared__ float shared[kThreads][kChannels + 1];
  __syncthreads();
#pragma unroll
  for (int i = 0; i < kChannels; ++i) shared[threadIdx.x][i] = values[i];
  __syncthreads();
  for (int c = static_cast<int>(threadIdx.x); c < channels; c += kThreads) {
    float sum = 0;
    for (int row = 0; row < seat.rows; ++row) {
      sum += shared[row * seat.vectors + c / kChannels][c % kChannels];
    }
    sums[c] = sum;
  }
}

/// The rows of a part, when they are divided into parts.
struct Part {
  __device__ Part(std::int64_t rows, int part, int parts)
      : begin(rows * part / parts), end(rows * (part + 1) / parts) {}
  std::int64_t begin;
  std::int64_t end;
};

/// Into how many parts each learner's rows are divided, to keep a large GPU busy.
inline std::int64_t parts_of(std::int64_t learners, std::int64_t rows, std::int64_t channels) {
  constexpr std::int64_t kBlocks = 1056;
  constexpr std::int64_t kTurns = 4;  // that a block should have at least
  const std::int64_t at_once = kThreads / (channels / kChannels);
  const std::int64_t most = (rows + kTurns * at_once - 1) / (kTurns * at_once);
  const std::int64_t wanted = (kBlocks + learners - 1) / learners;
  return wanted < most ? wanted : most;
}

using scalecom::core::cuda::native;

}  // namespace train::models::together::cuda
