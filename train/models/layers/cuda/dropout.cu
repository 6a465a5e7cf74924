#include "scalecom/core/cuda/check.h"
#include "scalecom/core/cuda/native.h"
#include "scalecom/core/cuda/runtime.h"
#include "train/models/layers/cuda/dropout.h"

namespace train::models::layers::cuda {
namespace {

namespace core = scalecom::core;

constexpr int kThreads = 256;

/// As Dropout::draw(), whose shifts keep the sign.
__device__ std::uint32_t mixed(std::uint32_t bits) {
  const auto shifted = [](std::uint32_t value, int by) {
    return static_cast<std::uint32_t>(static_cast<std::int32_t>(value) >> by);
  };
  bits = (bits ^ shifted(bits, 16)) * 0x7feb352dU;
  bits = (bits ^ shifted(bits, 16)) * 0x2c1b3c6dU;
  return bits ^ shifted(bits, 15);
}

__global__ void __launch_bounds__(kThreads)
    drop(const float* __restrict__ d_x, Drawn drawn, float kept, float* __restrict__ d_y) {
  const std::int64_t i = static_cast<std::int64_t>(blockIdx.y) * kThreads + threadIdx.x;
  if (i >= drawn.elements) return;
  const std::int64_t row = blockIdx.x;
  const std::int64_t at = row * drawn.elements + i;
  const std::int64_t learner = row / drawn.samples;
  const std::int64_t first = (row - learner * drawn.samples) * drawn.stride;
  const auto salt =
      static_cast<std::uint32_t>(drawn.noise[learner]) + static_cast<std::uint32_t>(drawn.salt);
  const std::uint32_t bits = mixed(static_cast<std::uint32_t>(first + i) + salt);
  const int byte = static_cast<int>(bits >> (8 * drawn.byte) & 0xffU);
  d_y[at] = d_x[at] * (byte >= drawn.limit ? kept : 0.0F);
}

}  // namespace

void drop(const float* x, const Drawn& drawn, float* y, const core::Stream& stream) {
  if (drawn.elements == 0 || drawn.samples == 0) return;
  const core::cuda::DeviceScope scope(stream.device());
  const auto kept = static_cast<float>(256.0 / (256 - drawn.limit));
  const dim3 blocks(static_cast<unsigned>(drawn.learners * drawn.samples),
                    static_cast<unsigned>((drawn.elements + kThreads - 1) / kThreads));
  drop<<<blocks, kThreads, 0, core::cuda::native(stream)>>>(x, drawn, kept, y);
  core::cuda::check(cudaGetLastError(), "dropout");
}

}  // namespace train::models::layers::cuda
