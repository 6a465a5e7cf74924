#pragma once

#include <ATen/core/Tensor.h>

#include <array>

namespace train::models::layers {

/// Of an LSTM in one direction, its gates in the order: in, forget, what comes in, out. With
/// several learners all have them as their first dimension, as linear.h has it.
struct LstmWeights {
  at::Tensor input;      ///< (inputs, 4 hidden)
  at::Tensor bias;       ///< (4 hidden)
  at::Tensor recurrent;  ///< (hidden, 4 hidden)
};

/// An LSTM forwards and one backwards over all steps of x, of (samples, steps, inputs): (samples,
/// steps, 2 hidden), those of the first in front.
///
/// cuDNN's has no gradient of the weights for each learner, and three times the samples took it a
/// quarter longer: learners one after the other leave most of a GPU idle.
at::Tensor lstm_both_ways(const at::Tensor& x, const std::array<LstmWeights, 2>& weights);

}  // namespace train::models::layers
