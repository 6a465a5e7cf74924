#include <algorithm>

#include "scalecom/core/cuda/check.h"
#include "scalecom/core/cuda/native.h"
#include "scalecom/core/cuda/runtime.h"
#include "scalecom/core/error.h"
#include "scalecom/core/text.h"
#include "train/models/layers/cuda/ctc.h"

namespace train::models::layers::cuda {
namespace {

namespace core = scalecom::core;

constexpr int kWarp = 32;
constexpr int kMostThreads = 256;
constexpr int kMostStates = 2048;  // whose numbers fit into a block's shared memory

// The logarithm of nothing. Infinity would become NaN where two of them are compared.
constexpr float kNever = -1e30F;

struct Shape {
  int steps;
  int classes;
  int most;
  int states;
};

/// log(exp(a) + exp(b) + exp(c)).
__device__ float log_sum(float a, float b, float c) {
  const float top = fmaxf(fmaxf(a, b), c);
  return logf(expf(a - top) + expf(b - top) + expf(c - top)) + top;
}

/// A sample's states, in shared memory.
struct States {
  int count;
  int last;  // the nothing after the last label
  int* labels;

  __device__ bool ends(int state) const { return state == last || state == last - 1; }
  /// Whether a label may follow the one before without nothing between them.
  __device__ bool skips_to(int state) const {
    return state >= 2 && state < count && labels[state] != 0 && labels[state] != labels[state - 2];
  }
};

__device__ States read_states(const std::int64_t* given, const Shape& shape, int* shared) {
  States states{shape.states, 0, shared};
  for (int s = static_cast<int>(threadIdx.x); s < shape.states; s += blockDim.x) {
    shared[s] = s % 2 == 1 ? static_cast<int>(given[s / 2]) : 0;
  }
  __syncthreads();
  for (int i = 0; i < shape.most; ++i) states.last += shared[2 * i + 1] != 0 ? 2 : 0;
  return states;
}

/// A block has a sample, a thread some of its states.
__global__ void __launch_bounds__(kMostThreads)
    walk(const float* __restrict__ d_logs, const std::int64_t* __restrict__ d_labels, Shape shape,
         float* __restrict__ d_forth, float* __restrict__ d_losses, float* __restrict__ d_slopes) {
  extern __shared__ float shared[];
  float* here = shared;
  float* there = shared + shape.states;  // a step away
  float* const shares = shared + 2 * shape.states;
  const std::int64_t sample = blockIdx.x;
  const States states = read_states(d_labels + sample * shape.most, shape,
                                    reinterpret_cast<int*>(shared + 3 * shape.states));
  const float* const logs = d_logs + sample * shape.steps * shape.classes;
  float* const forth = d_forth + sample * shape.steps * shape.states;
  float* const slopes = d_slopes + sample * shape.steps * shape.classes;
  const int first = static_cast<int>(threadIdx.x);
  const int stride = static_cast<int>(blockDim.x);
  const auto emission = [&](int step, int s) {
    return logs[step * shape.classes + states.labels[s]];
  };

  // All beginnings that end in a state, its own step included.
  for (int step = 0; step < shape.steps; ++step) {
    for (int s = first; s < shape.states; s += stride) {
      float way = s < 2 ? 0 : kNever;
      if (step > 0) {
        const float skipped = s >= 2 ? there[s - 2] : kNever;
        way = log_sum(there[s], s >= 1 ? there[s - 1] : kNever,
                      states.skips_to(s) ? skipped : kNever + skipped);
      }
      here[s] = way + emission(step, s);
      forth[static_cast<std::int64_t>(step) * shape.states + s] = here[s];
    }
    __syncthreads();
    float* const swap = here;
    here = there;
    there = swap;
  }
  const float total =
      log_sum(there[states.last], states.last > 0 ? there[states.last - 1] : kNever, kNever);
  if (first == 0) d_losses[sample] = -total;
  __syncthreads();

  // All endings that begin in it, and what of the probability goes through it.
  for (int step = shape.steps - 1; step >= 0; --step) {
    for (int s = first; s < shape.states; s += stride) {
      float way = states.ends(s) ? 0 : kNever;
      if (step < shape.steps - 1) {
        const float skipped = s + 2 < shape.states ? there[s + 2] : kNever;
        way = log_sum(there[s], s + 1 < shape.states ? there[s + 1] : kNever,
                      states.skips_to(s + 2) ? skipped : kNever + skipped);
      }
      here[s] = way + emission(step, s);
      const float from = forth[static_cast<std::int64_t>(step) * shape.states + s];
      shares[s] = expf(from + way - total);
    }
    __syncthreads();
    for (int c = first; c < shape.classes; c += stride) {
      float share = 0;
      for (int s = 0; s < shape.states; ++s) share += states.labels[s] == c ? shares[s] : 0;
      slopes[step * shape.classes + c] = expf(logs[step * shape.classes + c]) - share;
    }
    __syncthreads();
    float* const swap = here;
    here = there;
    there = swap;
  }
}

}  // namespace

void ctc(const Ctc& shape, const CtcPass& pass, const core::Stream& stream) {
  if (shape.states() > kMostStates) {
    throw core::UsageError(core::concat("[train] ", shape.most,
                                        " labels are too many for the CTC loss on a GPU; at most ",
                                        (kMostStates - 1) / 2, " fit"));
  }
  const core::cuda::DeviceScope scope(stream.device());
  const auto states = static_cast<int>(shape.states());
  const int threads = std::min(kMostThreads, (states + kWarp - 1) / kWarp * kWarp);
  const std::size_t shared = 4 * sizeof(float) * static_cast<std::size_t>(states);
  walk<<<static_cast<unsigned>(shape.samples), threads, shared, core::cuda::native(stream)>>>(
      pass.log_probabilities, pass.labels,
      {static_cast<int>(shape.steps), static_cast<int>(shape.classes), static_cast<int>(shape.most),
       states},
      pass.scratch, pass.losses, pass.slopes);
  core::cuda::check(cudaGetLastError(), "the CTC loss");
}

}  // namespace train::models::layers::cuda
