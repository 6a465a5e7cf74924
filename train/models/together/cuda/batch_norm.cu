#include "scalecom/core/cuda/check.h"
#include "train/models/activation.h"
#include "train/models/together/cuda/batch_norm.h"
#include "train/models/together/cuda/vectors.cuh"

namespace train::models::together::cuda {
namespace {

namespace core = scalecom::core;

/// A learner in each row of the grid, a part of its rows in each column.
struct Block {
  __device__ explicit Block(const Normed& normed)
      : seat(static_cast<int>(normed.channels)),
        learner(blockIdx.y),
        part(normed.rows, static_cast<int>(blockIdx.x), static_cast<int>(gridDim.x)) {}

  /// Calls `body` with the index of each vector that this thread has to do with.
  template <typename Body>
  __device__ void for_each(const Normed& normed, const Body& body) const {
    if (!seat.is_taken()) return;
    for (std::int64_t row = part.begin + seat.row; row < part.end; row += seat.rows) {
      body((learner * normed.rows + row) * seat.vectors + seat.vector);
    }
  }
  /// Where what belongs to this thread's channels begins.
  __device__ std::int64_t figure(const Normed& normed) const {
    return learner * normed.channels + seat.channel();
  }
  /// Where this block's sums go.
  __device__ std::int64_t sums(const Normed& normed) const {
    return (learner * gridDim.x + blockIdx.x) * normed.channels;
  }

  Seat seat;
  std::int64_t learner;
  Part part;
};

__global__ void __launch_bounds__(kThreads)
    sum_squares(Normed normed, const uint4* __restrict__ d_x, float* __restrict__ d_sums,
                float* __restrict__ d_squares) {
  const Block block(normed);
  Floats sum = {};
  Floats squares = {};
  block.for_each(normed, [&](std::int64_t at) {
    Floats x;
    unpack(d_x[at], x);
#pragma unroll
    for (int i = 0; i < kChannels; ++i) {
      sum[i] += x[i];
      squares[i] += x[i] * x[i];
    }
  });
  const int channels = static_cast<int>(normed.channels);
  add_up(block.seat, sum, channels, d_sums + block.sums(normed));
  add_up(block.seat, squares, channels, d_squares + block.sums(normed));
}

/// A thread a learner and channel adds its parts up, in a fixed order.
__device__ double sum_of_parts(const float* d_parts, const Normed& normed, int parts) {
  const std::int64_t learner = blockIdx.y;
  const std::int64_t channel = std::int64_t{blockIdx.x} * kThreads + threadIdx.x;
  double sum = 0;
  for (int part = 0; part < parts; ++part) {
    sum += static_cast<double>(d_parts[(learner * parts + part) * normed.channels + channel]);
  }
  return sum;
}

__global__ void __launch_bounds__(kThreads)
    finish_figures(Normed normed, int parts, NormForward pass,
                   const float* __restrict__ d_squares) {
  const std::int64_t channel = std::int64_t{blockIdx.x} * kThreads + threadIdx.x;
  if (channel >= normed.channels) return;
  const std::int64_t at = blockIdx.y * normed.channels + channel;
  const auto rows = static_cast<double>(normed.rows);
  const double mean = sum_of_parts(pass.scratch, normed, parts) / rows;
  const double square = sum_of_parts(d_squares, normed, parts) / rows;
  const double variance = fmax(square - mean * mean, 0.0);
  pass.mean[at] = static_cast<float>(mean);
  pass.variance[at] = static_cast<float>(variance * rows / (rows - 1));
  pass.inverse[at] = static_cast<float>(rsqrt(variance + kEpsilon));
}

__global__ void __launch_bounds__(kThreads) norm(Normed normed, NormForward pass) {
  const Block block(normed);
  if (!block.seat.is_taken()) return;
  Floats factor;
  Floats offset;
#pragma unroll
  for (int i = 0; i < kChannels; ++i) {
    const int channel = block.seat.channel() + i;
    const std::int64_t at = block.figure(normed) + i;
    factor[i] = pass.scale[channel] * pass.inverse[at];
    offset[i] = pass.bias[channel] - pass.mean[at] * factor[i];
  }
  const auto* const d_x = static_cast<const uint4*>(pass.x);
  const auto* const d_added = static_cast<const uint4*>(pass.added);
  auto* const d_y = static_cast<uint4*>(pass.y);
  block.for_each(normed, [&](std::int64_t at) {
    Floats x;
    unpack(d_x[at], x);
    Floats added = {};
    if (d_added != nullptr) unpack(d_added[at], added);
#pragma unroll
    for (int i = 0; i < kChannels; ++i) {
      x[i] = fminf(fmaxf(x[i] * factor[i] + offset[i] + added[i], normed.least), normed.most);
    }
    d_y[at] = pack(x);
  });
}

/// The gradient before the activation, and x as it was normed.
struct Before {
  __device__ Before(const Normed& normed, const NormBackward& pass, std::int64_t at,
                    const Floats& mean, const Floats& inverse) {
    Floats y;
    unpack(static_cast<const uint4*>(pass.grad)[at], grad);
    unpack(static_cast<const uint4*>(pass.x)[at], x);
    unpack(static_cast<const uint4*>(pass.y)[at], y);
#pragma unroll
    for (int i = 0; i < kChannels; ++i) {
      if (!(y[i] > normed.least && y[i] < normed.most)) grad[i] = 0;
      x[i] = (x[i] - mean[i]) * inverse[i];
    }
  }
  Floats grad;
  Floats x;
};

__global__ void __launch_bounds__(kThreads)
    sum_gradients(Normed normed, NormBackward pass, float* __restrict__ d_biases,
                  float* __restrict__ d_scales) {
  const Block block(normed);
  Floats mean = {};
  Floats inverse = {};
  if (block.seat.is_taken()) {
    load(pass.mean + block.figure(normed), mean);
    load(pass.inverse + block.figure(normed), inverse);
  }
  Floats bias = {};
  Floats scale = {};
  block.for_each(normed, [&](std::int64_t at) {
    const Before before(normed, pass, at, mean, inverse);
#pragma unroll
    for (int i = 0; i < kChannels; ++i) {
      bias[i] += before.grad[i];
      scale[i] += before.grad[i] * before.x[i];
    }
  });
  const int channels = static_cast<int>(normed.channels);
  add_up(block.seat, bias, channels, d_biases + block.sums(normed));
  add_up(block.seat, scale, channels, d_scales + block.sums(normed));
}

__global__ void __launch_bounds__(kThreads)
    finish_gradients(Normed normed, int parts, NormBackward pass,
                     const float* __restrict__ d_scales) {
  const std::int64_t channel = std::int64_t{blockIdx.x} * kThreads + threadIdx.x;
  if (channel >= normed.channels) return;
  const std::int64_t at = blockIdx.y * normed.channels + channel;
  pass.grad_bias[at] = static_cast<float>(sum_of_parts(pass.scratch, normed, parts));
  pass.grad_scale[at] = static_cast<float>(sum_of_parts(d_scales, normed, parts));
}

__global__ void __launch_bounds__(kThreads) norm_backward(Normed normed, NormBackward pass) {
  const Block block(normed);
  if (!block.seat.is_taken()) return;
  Floats mean;
  Floats inverse;
  Floats factor;
  Floats bias;
  Floats scale;
  load(pass.mean + block.figure(normed), mean);
  load(pass.inverse + block.figure(normed), inverse);
  load(pass.grad_bias + block.figure(normed), bias);
  load(pass.grad_scale + block.figure(normed), scale);
  const float share = 1.0F / static_cast<float>(normed.rows);
#pragma unroll
  for (int i = 0; i < kChannels; ++i) {
    factor[i] = pass.scale[block.seat.channel() + i] * inverse[i];
    bias[i] *= share;
    scale[i] *= share;
  }
  auto* const d_grad_x = static_cast<uint4*>(pass.grad_x);
  auto* const d_grad_added = static_cast<uint4*>(pass.grad_added);
  block.for_each(normed, [&](std::int64_t at) {
    const Before before(normed, pass, at, mean, inverse);
    if (d_grad_added != nullptr) d_grad_added[at] = pack(before.grad);
    Floats out;
#pragma unroll
    for (int i = 0; i < kChannels; ++i) {
      out[i] = factor[i] * (before.grad[i] - bias[i] - before.x[i] * scale[i]);
    }
    d_grad_x[at] = pack(out);
  });
}

std::int64_t parts(const Normed& normed) {
  return parts_of(normed.learners, normed.rows, normed.channels);
}

dim3 grid(const Normed& normed) {
  return {static_cast<unsigned>(parts(normed)), static_cast<unsigned>(normed.learners)};
}

dim3 figures_grid(const Normed& normed) {
  return {static_cast<unsigned>((normed.channels + kThreads - 1) / kThreads),
          static_cast<unsigned>(normed.learners)};
}

}  // namespace

std::int64_t parts_elements(const Normed& normed) {
  return normed.learners * parts(normed) * normed.channels;
}

void batch_norm_forward(const Normed& normed, const NormForward& pass, const core::Stream& stream) {
  const core::cuda::DeviceScope scope(stream.device());
  float* const squares = pass.scratch + parts_elements(normed);
  sum_squares<<<grid(normed), kThreads, 0, native(stream)>>>(
      normed, static_cast<const uint4*>(pass.x), pass.scratch, squares);
  finish_figures<<<figures_grid(normed), kThreads, 0, native(stream)>>>(
      normed, static_cast<int>(parts(normed)), pass, squares);
  norm<<<grid(normed), kThreads, 0, native(stream)>>>(normed, pass);
  core::cuda::check(cudaGetLastError(), "batch norm");
}

void batch_norm_backward(const Normed& normed, const NormBackward& pass,
                         const core::Stream& stream) {
  const core::cuda::DeviceScope scope(stream.device());
  float* const scales = pass.scratch + parts_elements(normed);
  sum_gradients<<<grid(normed), kThreads, 0, native(stream)>>>(normed, pass, pass.scratch, scales);
  finish_gradients<<<figures_grid(normed), kThreads, 0, native(stream)>>>(
      normed, static_cast<int>(parts(normed)), pass, scales);
  norm_backward<<<grid(normed), kThreads, 0, native(stream)>>>(normed, pass);
  core::cuda::check(cudaGetLastError(), "the gradient of batch norm");
}

}  // namespace train::models::together::cuda
