#pragma once

#include <ATen/ATen.h>

#include <cstdint>

#include "train/models/pass.h"

/// For the files that compute with torch, whose headers take half a minute.
namespace train::models {

/// Takes the parameters and figures of a pass in the order in which they were added.
struct Walk {
  explicit Walk(const Model::Pass& pass)
      : parameter(pass.parameters.data()), figure(pass.figures.data()), training(pass.training) {}

  /// Without a bias; height and width are kept, but for the stride. In groups, each output sees the
  /// inputs of its group alone.
  at::Tensor convolution(const at::Tensor& x, std::int64_t stride, std::int64_t groups = 1) {
    const at::Tensor weight = (parameter++)->permute({3, 2, 0, 1});
    return at::conv2d(x, weight, {}, stride, weight.size(2) / 2, 1, groups);
  }

  /// With a share of 1 for the new figures, "running" figures are those of this batch.
  at::Tensor batch_norm(const at::Tensor& x) {
    constexpr double kEpsilon = 1e-5;  // added to a variance
    const at::Tensor out = at::batch_norm(x, parameter[0], parameter[1], figure[0], figure[1],
                                          training, 1.0, kEpsilon, true);
    parameter += 2;
    figure += 2;
    return out;
  }

  /// A linear layer of each sample's mean over all places. Torch's pooling layers are not
  /// deterministic on a GPU.
  at::Tensor classify(const at::Tensor& x) const {
    return at::addmm(parameter[1], x.mean({2, 3}), parameter[0]);
  }

  const at::Tensor* parameter;
  const at::Tensor* figure;
  bool training;
};

}  // namespace train::models
