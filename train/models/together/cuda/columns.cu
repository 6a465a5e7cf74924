#include "scalecom/core/cuda/check.h"
#include "scalecom/core/error.h"
#include "train/models/together/cuda/columns.h"
#include "train/models/together/cuda/vectors.cuh"

namespace train::models::together::cuda {
namespace {

namespace core = scalecom::core;

struct Shape {
  std::uint32_t height;
  std::uint32_t width;
  std::uint32_t vectors;  // of a place
  std::uint32_t out_height;
  std::uint32_t out_width;
  std::uint32_t kernel;
  std::uint32_t stride;
  std::uint32_t all;  // vectors to write
};

__global__ void __launch_bounds__(kThreads)
    write(const uint4* __restrict__ d_x, Shape shape, uint4* __restrict__ d_columns) {
  const std::uint32_t i = blockIdx.x * kThreads + threadIdx.x;
  if (i >= shape.all) return;
  const std::uint32_t vector = i % shape.vectors;
  std::uint32_t rest = i / shape.vectors;
  const std::uint32_t right = rest % shape.kernel;
  rest /= shape.kernel;
  const std::uint32_t down = rest % shape.kernel;
  rest /= shape.kernel;
  const std::uint32_t out_x = rest % shape.out_width;
  rest /= shape.out_width;
  const std::uint32_t out_y = rest % shape.out_height;
  const std::uint32_t sample = rest / shape.out_height;
  // Outside at the low end wraps around to a large number.
  const std::uint32_t y = out_y * shape.stride + down - shape.kernel / 2;
  const std::uint32_t x = out_x * shape.stride + right - shape.kernel / 2;
  uint4 value = make_uint4(0, 0, 0, 0);
  if (y < shape.height && x < shape.width) {
    const std::uint32_t place = (sample * shape.height + y) * shape.width + x;
    value = d_x[std::size_t{place} * shape.vectors + vector];
  }
  d_columns[i] = value;
}

}  // namespace

void write_columns(const void* x, const Places& in, std::int64_t kernel, std::int64_t stride,
                   void* columns, const core::Stream& stream) {
  const core::cuda::DeviceScope scope(stream.device());
  const Places out = in.after(stride);
  const std::int64_t vectors = in.channels / kChannels;
  const std::int64_t all = out.count() * kernel * kernel * vectors;
  if (all >= (std::int64_t{1} << 32) - kThreads) {
    throw core::UsageError("[train] too many samples at once for a convolution");
  }
  const auto u = [](std::int64_t value) { return static_cast<std::uint32_t>(value); };
  const Shape shape{u(in.height), u(in.width), u(vectors), u(out.height),
                    u(out.width), u(kernel),   u(stride),  u(all)};
  write<<<u((all + kThreads - 1) / kThreads), kThreads, 0, native(stream)>>>(
      static_cast<const uint4*>(x), shape, static_cast<uint4*>(columns));
  core::cuda::check(cudaGetLastError(), "the columns of a convolution");
}

}  // namespace train::models::together::cuda
