#pragma once

#include <ATen/core/Tensor.h>

namespace train::models::layers {

/// The rows of `table` that `tokens` name, one more dimension. The row of the token `none`, which
/// fills up what is too short, has no gradient. With a table for each learner, all of them the same
/// and the first dimension of `table`, each takes as many of the tokens, in turn.
///
/// Torch's own has, on a GPU, a gradient that no CUDA graph can hold.
at::Tensor look_up(const at::Tensor& table, const at::Tensor& tokens, std::int64_t none);

}  // namespace train::models::layers
