#include "scalecom/core/cuda/check.h"
#include "train/models/together/cuda/depthwise.h"
#include "train/models/together/cuda/vectors.cuh"

namespace train::models::together::cuda {
namespace {

namespace core = scalecom::core;

constexpr int kKernel = 3;
constexpr int kTaps = kKernel * kKernel;

struct Shape {
  std::int64_t samples;
  int height;
  int width;
  int channels;
  int out_height;
  int out_width;
  int stride;
};

/// A place of a sample, from its index among all.
struct Place {
  __device__ Place(std::int64_t index, int height, int width)
      : sample(index / (height * width)),
        y(static_cast<int>(index % (height * width)) / width),
        x(static_cast<int>(index % (height * width)) % width) {}
  std::int64_t sample;
  int y;
  int x;
};

__device__ void load_weights(const float* d_weights, const Shape& shape, const Seat& seat,
                             Floats (&weights)[kTaps]) {
#pragma unroll
  for (int tap = 0; tap < kTaps; ++tap) {
    load(d_weights + tap * shape.channels + seat.channel(), weights[tap]);
  }
}

/// The vector of x that an output sees through a tap; false outside.
__device__ bool seen(const Shape& shape, const Place& out, int tap, const Seat& seat,
                     std::int64_t& at) {
  const int y = out.y * shape.stride + tap / kKernel - 1;
  const int x = out.x * shape.stride + tap % kKernel - 1;
  if (y < 0 || y >= shape.height || x < 0 || x >= shape.width) return false;
  at = ((out.sample * shape.height + y) * shape.width + x) * seat.vectors + seat.vector;
  return true;
}

/// The vector of the outputs that sees a place of x through a tap; false where there is none.
__device__ bool sees(const Shape& shape, const Place& in, int tap, const Seat& seat,
                     std::int64_t& at) {
  const int y = in.y + 1 - tap / kKernel;
  const int x = in.x + 1 - tap % kKernel;
  if (y < 0 || x < 0 || y % shape.stride != 0 || x % shape.stride != 0) return false;
  const int out_y = y / shape.stride;
  const int out_x = x / shape.stride;
  if (out_y >= shape.out_height || out_x >= shape.out_width) return false;
  at = ((in.sample * shape.out_height + out_y) * shape.out_width + out_x) * seat.vectors +
       seat.vector;
  return true;
}

/// Both passes: every place of `to` is a weighted sum over `from`.
template <bool kForward>
__global__ void __launch_bounds__(kThreads)
    pass(Shape shape, const uint4* __restrict__ d_from, const float* __restrict__ d_weights,
         uint4* __restrict__ d_to) {
  const Seat seat(shape.channels);
  if (!seat.is_taken()) return;
  Floats weights[kTaps];
  load_weights(d_weights, shape, seat, weights);
  const int height = kForward ? shape.out_height : shape.height;
  const int width = kForward ? shape.out_width : shape.width;
  const Part part(shape.samples * height * width, static_cast<int>(blockIdx.x),
                  static_cast<int>(gridDim.x));
  for (std::int64_t row = part.begin + seat.row; row < part.end; row += seat.rows) {
    const Place place(row, height, width);
    Floats sum = {};
#pragma unroll
    for (int tap = 0; tap < kTaps; ++tap) {
      std::int64_t at = 0;
      const bool inside =
          kForward ? seen(shape, place, tap, seat, at) : sees(shape, place, tap, seat, at);
      if (!inside) continue;
      Floats values;
      unpack(d_from[at], values);
#pragma unroll
      for (int i = 0; i < kChannels; ++i) sum[i] += values[i] * weights[tap][i];
    }
    d_to[row * seat.vectors + seat.vector] = pack(sum);
  }
}

__global__ void __launch_bounds__(kThreads)
    sum_weights(Shape shape, std::int64_t learner_rows, const uint4* __restrict__ d_grad,
                const uint4* __restrict__ d_x, float* __restrict__ d_parts) {
  const Seat seat(shape.channels);
  Floats sums[kTaps] = {};
  const Part part(learner_rows, static_cast<int>(blockIdx.x), static_cast<int>(gridDim.x));
  if (seat.is_taken()) {
    for (std::int64_t i = part.begin + seat.row; i < part.end; i += seat.rows) {
      const std::int64_t row = blockIdx.y * learner_rows + i;
      const Place out(row, shape.out_height, shape.out_width);
      Floats grad;
      unpack(d_grad[row * seat.vectors + seat.vector], grad);
#pragma unroll
      for (int tap = 0; tap < kTaps; ++tap) {
        std::int64_t at = 0;
        if (!seen(shape, out, tap, seat, at)) continue;
        Floats x;
        unpack(d_x[at], x);
#pragma unroll
        for (int c = 0; c < kChannels; ++c) sums[tap][c] += grad[c] * x[c];
      }
    }
  }
  const std::int64_t block = std::int64_t{blockIdx.y} * gridDim.x + blockIdx.x;
#pragma unroll
  for (int tap = 0; tap < kTaps; ++tap) {
    add_up(seat, sums[tap], shape.channels, d_parts + (block * kTaps + tap) * shape.channels);
  }
}

/// A thread a weight of a learner.
__global__ void __launch_bounds__(kThreads)
    finish_weights(const float* __restrict__ d_parts, int parts, int weights,
                   float* __restrict__ d_grad_weights) {
  const int weight = static_cast<int>(blockIdx.x * kThreads + threadIdx.x);
  if (weight >= weights) return;
  const std::int64_t learner = blockIdx.y;
  float sum = 0;
  for (int part = 0; part < parts; ++part)
    sum += d_parts[(learner * parts + part) * weights + weight];
  d_grad_weights[learner * weights + weight] = sum;
}

Shape shape_of(const Places& in, std::int64_t stride) {
  const Places out = in.after(stride);
  const auto narrow = [](std::int64_t value) { return static_cast<int>(value); };
  return {in.samples,         narrow(in.height), narrow(in.width), narrow(in.channels),
          narrow(out.height), narrow(out.width), narrow(stride)};
}

template <bool kForward>
void launch(const void* from, const float* weights, const Places& in, std::int64_t stride, void* to,
            const core::Stream& stream) {
  const core::cuda::DeviceScope scope(stream.device());
  const Places out = kForward ? in.after(stride) : in;
  const auto blocks = static_cast<unsigned>(parts_of(1, out.count(), out.channels));
  pass<kForward><<<blocks, kThreads, 0, native(stream)>>>(
      shape_of(in, stride), static_cast<const uint4*>(from), weights, static_cast<uint4*>(to));
  core::cuda::check(cudaGetLastError(), "a convolution by channel");
}

}  // namespace

void depthwise_forward(const void* x, const float* weights, const Places& in, std::int64_t stride,
                       void* y, const core::Stream& stream) {
  launch<true>(x, weights, in, stride, y, stream);
}

void depthwise_input(const void* grad, const float* weights, const Places& in, std::int64_t stride,
                     void* grad_x, const core::Stream& stream) {
  launch<false>(grad, weights, in, stride, grad_x, stream);
}

std::int64_t depthwise_parts(const Places& in, std::int64_t learners, std::int64_t stride) {
  return parts_of(learners, in.after(stride).count() / learners, in.channels);
}

void depthwise_weights(const void* grad, const void* x, const Places& in, std::int64_t learners,
                       std::int64_t stride, float* scratch, float* grad_weights,
                       const core::Stream& stream) {
  const core::cuda::DeviceScope scope(stream.device());
  const auto parts = static_cast<unsigned>(depthwise_parts(in, learners, stride));
  const auto rows = static_cast<unsigned>(learners);
  sum_weights<<<dim3(parts, rows), kThreads, 0, native(stream)>>>(
      shape_of(in, stride), in.after(stride).count() / learners, static_cast<const uint4*>(grad),
      static_cast<const uint4*>(x), scratch);
  const int weights = kTaps * static_cast<int>(in.channels);
  finish_weights<<<dim3(static_cast<unsigned>(weights + kThreads - 1) / kThreads, rows), kThreads,
                   0, native(stream)>>>(scratch, static_cast<int>(parts), weights, grad_weights);
  core::cuda::check(cudaGetLastError(), "the weights of a convolution by channel");
}

}  // namespace train::models::together::cuda
