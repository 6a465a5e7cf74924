#include <algorithm>
#include <array>

#include "scalecom/core/cuda/check.h"
#include "scalecom/core/cuda/native.h"
#include "scalecom/core/cuda/runtime.h"
#include "train/models/cuda/batches.h"

namespace train::models::cuda {
namespace {

namespace core = scalecom::core;
using data::Pick;

constexpr int kThreads = 256;
constexpr int kTile = 32;
constexpr int kTileRows = 8;  // that a block moves at once

/// Picks as a kernel's argument, of which there is room for 4 KiB: no memory to copy from, and none
/// that has to stay.
struct Picks {
  static constexpr std::size_t kMost = 448;
  std::array<Pick, kMost> picks;
};

struct Set {
  const std::uint8_t* d_bytes;
  const float* d_scale;
  const float* d_floats;
  const std::uint8_t* d_labels;
  int channels;
  int height;
  int width;
};

/// As data::Pick has it.
__device__ int reflected(int place, int size) {
  if (place < 0) return -place;
  return place < size ? place : 2 * size - 2 - place;
}

__device__ float value_at(const Set& set, const Pick& pick, int channel, int y, int x) {
  const int from_y = reflected(y + pick.down, set.height);
  const int from_x =
      reflected((pick.mirrored != 0 ? set.width - 1 - x : x) + pick.right, set.width);
  const std::int64_t row =
      (std::int64_t{pick.sample} * set.channels + channel) * set.height + from_y;
  const std::int64_t place = row * set.width + from_x;
  return set.d_floats != nullptr ? set.d_floats[place]
                                 : set.d_scale[channel * 256 + set.d_bytes[place]];
}

__global__ void __launch_bounds__(kThreads)
    assemble_batch(__grid_constant__ const Picks picks, Set set, float* __restrict__ d_inputs,
                   std::int64_t* __restrict__ d_labels) {
  const Pick pick = picks.picks[blockIdx.x];
  const int elements = set.channels * set.height * set.width;
  const int i = static_cast<int>(blockIdx.y) * kThreads + static_cast<int>(threadIdx.x);
  if (i == 0) d_labels[blockIdx.x] = set.d_labels[pick.sample];
  if (i >= elements) return;
  const int channel = i % set.channels;
  const int place = i / set.channels;
  d_inputs[std::int64_t{blockIdx.x} * elements + i] =
      value_at(set, pick, channel, place / set.width, place % set.width);
}

__device__ int matrix_of(int tile, const std::int32_t* d_first_tiles, int matrices) {
  int low = 0;
  int high = matrices;
  while (high - low > 1) {
    const int middle = (low + high) / 2;
    (d_first_tiles[middle] <= tile ? low : high) = middle;
  }
  return low;
}

/// Tiles of a matrix. A single row is cut into as long parts as other tiles have elements: one of
/// which each tile had a line would leave 31 of 32 threads idle.
std::int64_t tiles_of(const Matrix& matrix) {
  const auto divided = [](std::int64_t extent, std::int64_t by) { return (extent + by - 1) / by; };
  if (matrix.rows == 1) return divided(matrix.columns, kTile * kTile);
  return divided(matrix.rows, kTile) * divided(matrix.columns, kTile);
}

__global__ void __launch_bounds__(kTile* kTileRows)
    transpose_all(const Matrix* __restrict__ d_matrices,
                  const std::int32_t* __restrict__ d_first_tiles, int matrices,
                  float* __restrict__ d_to) {
  __shared__ float block[kTile][kTile + 1];
  const int tile = static_cast<int>(blockIdx.x);
  const int index = matrix_of(tile, d_first_tiles, matrices);
  const Matrix matrix = d_matrices[index];
  if (matrix.rows == 1) {
    const std::int64_t first =
        static_cast<std::int64_t>(tile - d_first_tiles[index]) * kTile * kTile;
    const int own = static_cast<int>(threadIdx.y) * kTile + static_cast<int>(threadIdx.x);
    for (int i = own; i < kTile * kTile && first + i < matrix.columns; i += kTile * kTileRows) {
      d_to[matrix.to + first + i] = matrix.from[first + i];
    }
    return;
  }
  const std::int64_t across = (matrix.columns + kTile - 1) / kTile;
  const std::int64_t row = (tile - d_first_tiles[index]) / across * kTile;
  const std::int64_t column = (tile - d_first_tiles[index]) % across * kTile;
  for (int y = static_cast<int>(threadIdx.y); y < kTile; y += kTileRows) {
    const std::int64_t r = row + y;
    const std::int64_t c = column + threadIdx.x;
    if (r < matrix.rows && c < matrix.columns) {
      block[y][threadIdx.x] = matrix.from[r * matrix.columns + c];
    }
  }
  __syncthreads();
  for (int y = static_cast<int>(threadIdx.y); y < kTile; y += kTileRows) {
    const std::int64_t r = row + threadIdx.x;
    const std::int64_t c = column + y;
    if (r < matrix.rows && c < matrix.columns) {
      d_to[matrix.to + c * matrix.rows + r] = block[threadIdx.x][y];
    }
  }
}

using core::cuda::native;

template <typename T>
core::Array<T> to_device(core::Device device, std::span<const T> values) {
  core::Array<T> array(device, static_cast<std::int64_t>(values.size()));
  const core::Stream stream = core::Stream::cuda(device);
  core::cuda::copy(array.data(), values.data(), static_cast<std::int64_t>(values.size_bytes()),
                   stream);
  core::cuda::synchronize(stream);
  return array;
}

}  // namespace

DeviceSamples::DeviceSamples(core::Device device, const data::Samples& samples)
    : shape_(samples.shape),
      bytes_(to_device(device, std::span(samples.bytes))),
      scale_(to_device(device, std::span(samples.scale))),
      floats_(to_device(device, std::span(samples.floats))),
      labels_(to_device(device, std::span(samples.labels))) {}

void DeviceSamples::assemble(std::span<const Pick> picks, float* inputs, std::int64_t* labels,
                             const core::Stream& stream) const {
  const core::cuda::DeviceScope scope(stream.device());
  const Set set{bytes_.data(),
                scale_.data(),
                floats_.data(),
                labels_.data(),
                static_cast<int>(shape_.channels),
                static_cast<int>(shape_.height),
                static_cast<int>(shape_.width)};
  const auto slices = static_cast<unsigned>((shape_.elements() + kThreads - 1) / kThreads);
  while (!picks.empty()) {
    Picks some{};
    const std::size_t count = std::min(picks.size(), Picks::kMost);
    std::copy_n(picks.begin(), count, some.picks.begin());
    assemble_batch<<<dim3(static_cast<unsigned>(count), slices), kThreads, 0, native(stream)>>>(
        some, set, inputs, labels);
    core::cuda::check(cudaGetLastError(), "the assembly of a batch");
    picks = picks.subspan(count);
    inputs += static_cast<std::int64_t>(count) * shape_.elements();
    labels += count;
  }
}

Transposition::Transposition(core::Device device, std::span<const Matrix> matrices) {
  std::vector<std::int32_t> first_tiles;
  for (const Matrix& matrix : matrices) {
    first_tiles.push_back(tiles_);
    tiles_ += static_cast<std::int32_t>(tiles_of(matrix));
  }
  matrices_ = to_device(device, matrices);
  first_tiles_ = to_device(device, std::span<const std::int32_t>(first_tiles));
}

void Transposition::run(float* to, const core::Stream& stream) const {
  if (tiles_ == 0) return;
  const core::cuda::DeviceScope scope(stream.device());
  transpose_all<<<static_cast<unsigned>(tiles_), dim3(kTile, kTileRows), 0, native(stream)>>>(
      matrices_.data(), first_tiles_.data(), static_cast<int>(matrices_.size()), to);
  core::cuda::check(cudaGetLastError(), "the gathering of a gradient");
}

}  // namespace train::models::cuda
