#pragma once

#include <ATen/core/Tensor.h>

namespace train::models::layers {

/// The CTC loss of each sample: minus the logarithm of the probability that the steps say its
/// labels, over all ways to say them. `logits` are (samples, steps, classes), class 0 being
/// nothing; `labels` are (samples, most labels), 0 after the last.
///
/// Torch's own is not deterministic on a GPU and reads the labels' lengths on the host, so that no
/// CUDA graph can hold it.
at::Tensor ctc_loss(const at::Tensor& logits, const at::Tensor& labels);

}  // namespace train::models::layers
