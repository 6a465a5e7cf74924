#pragma once

#include <cstdint>

#include "scalecom/core/stream.h"

namespace train::models::layers::cuda {

/// Both directions of an LSTM at one of its steps: direction 0 is at that place, direction 1 as far
/// from the end.
struct LstmStep {
  std::int64_t samples = 0;
  std::int64_t steps = 0;
  std::int64_t hidden = 0;
  std::int64_t step = 0;
};

struct LstmForward {
  const float* given[2];      ///< what the gates get of x: (samples, steps, 4 hidden)
  const float* product;       ///< and of the last step: (2, samples, 4 hidden)
  const float* cells_before;  ///< (2, samples, hidden)
  float* gates;               ///< open how far: (2, samples, 4 hidden)
  float* cells;               ///< (2, samples, hidden)
  float* state;               ///< what the next step gets: (2, samples, hidden)
  float* out;                 ///< the same, where it belongs: (samples, steps, 2 hidden)
};

struct LstmBackward {
  const float* slope;  ///< by `out`: (samples, steps, 2 hidden)
  const float* gates;
  const float* cells_before;
  const float* cells;
  const float* state_slope;  ///< by way of the next step: (2, samples, hidden)
  float* cells_slope;        ///< the same, on its way to the step before
  float* gates_slope;        ///< (2, samples, 4 hidden)
  float* given_slopes[2];    ///< the same, where they belong: (samples, steps, 4 hidden)
};

/// In order on `stream`.
void lstm_forward(const LstmStep& step, const LstmForward& pass,
                  const scalecom::core::Stream& stream);
void lstm_backward(const LstmStep& step, const LstmBackward& pass,
                   const scalecom::core::Stream& stream);

}  // namespace train::models::layers::cuda
