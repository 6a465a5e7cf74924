#include "train/models/layers/cuda/lstm.h"

#include "scalecom/core/cuda/check.h"
#include "scalecom/core/cuda/native.h"
#include "scalecom/core/cuda/runtime.h"

namespace train::models::layers::cuda {
namespace {

namespace core = scalecom::core;

constexpr int kThreads = 256;

/// Which number of a step's arrays a thread has, and where it lies in those of all steps.
struct Here {
  int direction;
  std::int64_t unit;   // of (2, samples, hidden)
  std::int64_t gate;   // of (2, samples, 4 hidden), the first of four that are `hidden` apart
  std::int64_t given;  // of (samples, steps, 4 hidden), likewise
  std::int64_t out;    // of (samples, steps, 2 hidden)
};

__device__ Here find(const LstmStep& step, std::int64_t thread) {
  const std::int64_t row = thread / step.hidden;
  const std::int64_t unit = thread - row * step.hidden;
  const int direction = row < step.samples ? 0 : 1;
  const std::int64_t sample = row - direction * step.samples;
  const std::int64_t place = direction == 0 ? step.step : step.steps - 1 - step.step;
  const std::int64_t line = sample * step.steps + place;
  return {direction, thread, row * 4 * step.hidden + unit, line * 4 * step.hidden + unit,
          (2 * line + direction) * step.hidden + unit};
}

__device__ float sigmoid(float x) {
  return 1.0F / (1.0F + expf(-x));
}

__global__ void __launch_bounds__(kThreads) forward(LstmStep step, LstmForward pass) {
  const std::int64_t thread = static_cast<std::int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (thread >= 2 * step.samples * step.hidden) return;
  const Here here = find(step, thread);
  const float* const given = (here.direction == 0 ? pass.given[0] : pass.given[1]) + here.given;
  const float* const product = pass.product + here.gate;
  const std::int64_t hidden = step.hidden;
  const float in = sigmoid(given[0] + product[0]);
  const float forget = sigmoid(given[hidden] + product[hidden]);
  const float comes = tanhf(given[2 * hidden] + product[2 * hidden]);
  const float open = sigmoid(given[3 * hidden] + product[3 * hidden]);
  const float cell = forget * pass.cells_before[here.unit] + in * comes;
  const float state = open * tanhf(cell);
  float* const gates = pass.gates + here.gate;
  gates[0] = in;
  gates[hidden] = forget;
  gates[2 * hidden] = comes;
  gates[3 * hidden] = open;
  pass.cells[here.unit] = cell;
  pass.state[here.unit] = state;
  pass.out[here.out] = state;
}

__global__ void __launch_bounds__(kThreads) backward(LstmStep step, LstmBackward pass) {
  const std::int64_t thread = static_cast<std::int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (thread >= 2 * step.samples * step.hidden) return;
  const Here here = find(step, thread);
  const std::int64_t hidden = step.hidden;
  const float* const gates = pass.gates + here.gate;
  const float in = gates[0];
  const float forget = gates[hidden];
  const float comes = gates[2 * hidden];
  const float open = gates[3 * hidden];
  const float seen = tanhf(pass.cells[here.unit]);
  const float state_slope = pass.slope[here.out] + pass.state_slope[here.unit];
  const float cell_slope = pass.cells_slope[here.unit] + state_slope * open * (1.0F - seen * seen);
  const float slopes[4] = {cell_slope * comes * in * (1.0F - in),
                           cell_slope * pass.cells_before[here.unit] * forget * (1.0F - forget),
                           cell_slope * in * (1.0F - comes * comes),
                           state_slope * seen * open * (1.0F - open)};
  pass.cells_slope[here.unit] = cell_slope * forget;
  float* const given_slopes = here.direction == 0 ? pass.given_slopes[0] : pass.given_slopes[1];
  for (int gate = 0; gate < 4; ++gate) {
    pass.gates_slope[here.gate + gate * hidden] = slopes[gate];
    given_slopes[here.given + gate * hidden] = slopes[gate];
  }
}

template <typename Kernel, typename Pass>
void launch(Kernel kernel, const LstmStep& step, const Pass& pass, const core::Stream& stream) {
  const std::int64_t threads = 2 * step.samples * step.hidden;
  if (threads == 0) return;
  const core::cuda::DeviceScope scope(stream.device());
  kernel<<<static_cast<unsigned>((threads + kThreads - 1) / kThreads), kThreads, 0,
           core::cuda::native(stream)>>>(step, pass);
  core::cuda::check(cudaGetLastError(), "the LSTM");
}

}  // namespace

void lstm_forward(const LstmStep& step, const LstmForward& pass, const core::Stream& stream) {
  launch(forward, step, pass, stream);
}

void lstm_backward(const LstmStep& step, const LstmBackward& pass, const core::Stream& stream) {
  launch(backward, step, pass, stream);
}

}  // namespace train::models::layers::cuda
