#include "scalecom/core/cuda/check.h"
#include "scalecom/core/cuda/native.h"
#include "scalecom/core/cuda/runtime.h"
#include "train/models/layers/cuda/token_table.h"

namespace train::models::layers::cuda {
namespace {

namespace core = scalecom::core;

constexpr int kWarp = 32;
constexpr int kWarps = 8;
constexpr int kThreads = kWarps * kWarp;
constexpr int kTokens = 1024;   // that a block looks at together
constexpr int kOwnColumns = 8;  // of a thread
constexpr int kColumns = kOwnColumns * kWarp;

/// A warp has a row of a learner's table, and adds up, in order, what its tokens have. There are
/// few tokens in a batch and many rows, so most warps only look for theirs. The order makes the sum
/// the same in every run, which adding by whoever comes first would not.
__global__ void __launch_bounds__(kThreads) add_up(TableGradient pass) {
  __shared__ std::int64_t tokens[kTokens];
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  const std::int64_t row =
      static_cast<std::int64_t>(blockIdx.x) * kWarps + static_cast<int>(threadIdx.x) / kWarp;
  const std::int64_t learner = blockIdx.z;
  const std::int64_t first = learner * pass.count;
  const std::int64_t column = static_cast<std::int64_t>(blockIdx.y) * kColumns + lane;
  float sums[kOwnColumns] = {};
  for (std::int64_t begin = 0; begin < pass.count; begin += kTokens) {
    __syncthreads();
    for (int i = static_cast<int>(threadIdx.x); i < kTokens; i += kThreads) {
      tokens[i] = begin + i < pass.count ? pass.tokens[first + begin + i] : -1;
    }
    __syncthreads();
    for (int at = 0; at < kTokens; at += kWarp) {
      unsigned found = __ballot_sync(0xffffffffU, tokens[at + lane] == row);
      if (row == pass.none) continue;
      for (; found != 0; found &= found - 1) {
        const std::int64_t token = first + begin + at + __ffs(static_cast<int>(found)) - 1;
        const float* const grad = pass.grad + token * pass.width;
#pragma unroll
        for (int i = 0; i < kOwnColumns; ++i) {
          if (column + i * kWarp < pass.width) sums[i] += grad[column + i * kWarp];
        }
      }
    }
  }
  if (row >= pass.rows) return;
  float* const to = pass.grad_table + (learner * pass.rows + row) * pass.width;
#pragma unroll
  for (int i = 0; i < kOwnColumns; ++i) {
    if (column + i * kWarp < pass.width) to[column + i * kWarp] = sums[i];
  }
}

unsigned divided_up(std::int64_t all, int by) {
  return static_cast<unsigned>((all + by - 1) / by);
}

}  // namespace

void token_table_gradient(const TableGradient& pass, const core::Stream& stream) {
  const core::cuda::DeviceScope scope(stream.device());
  const dim3 blocks(divided_up(pass.rows, kWarps), divided_up(pass.width, kColumns),
                    static_cast<unsigned>(pass.learners));
  add_up<<<blocks, kThreads, 0, core::cuda::native(stream)>>>(pass);
  core::cuda::check(cudaGetLastError(), "the gradient of a table of tokens");
}

}  // namespace train::models::layers::cuda
