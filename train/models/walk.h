#pragma once

#include <ATen/ATen.h>

#include <cstdint>

#include "train/models/activation.h"
#include "train/models/pass.h"
#include "train/models/together/batch_norm.h"
#include "train/models/together/convolution.h"
#include "train/models/together/depthwise.h"

/// For the files that compute with torch, whose headers take half a minute.
namespace train::models {

/// Takes the parameters and figures of a pass in the order in which they were added, for one
/// learner's mini-batch or for those of several.
struct Walk {
  explicit Walk(const Model::Pass& pass)
      : parameter(pass.parameters.data()),
        figure(pass.figures.data()),
        training(pass.training),
        learners(pass.learners) {}

  /// Without a bias; height and width are kept, but for the stride.
  at::Tensor convolution(const at::Tensor& x, std::int64_t stride) {
    const at::Tensor& weights = *parameter++;
    if (learners > 1) return together::convolution(x, weights, stride);
    const at::Tensor weight = weights.permute({3, 2, 0, 1});
    return at::conv2d(x, weight, {}, stride, weight.size(2) / 2);
  }

  /// The same by 3 x 3 weights of each channel's own.
  at::Tensor depthwise(const at::Tensor& x, std::int64_t stride) {
    const at::Tensor& weights = *parameter++;
    if (learners > 1) return together::depthwise(x, weights, stride);
    return at::conv2d(x, weights.permute({3, 2, 0, 1}), {}, stride, 1, 1, x.size(1));
  }

  /// Then `added`, where it is given, and the activation.
  at::Tensor batch_norm(const at::Tensor& x, Activation activation = Activation::kNone,
                        const at::Tensor& added = {}) {
    const at::Tensor* const of = parameter;
    const at::Tensor* const into = figure;
    parameter += 2;
    figure += 2;
    if (learners > 1) {
      together::Seen seen;
      at::Tensor y = together::batch_norm(x, of[0], of[1], activation, added, seen);
      into[0].copy_(seen.mean);
      into[1].copy_(seen.variance);
      return y;
    }
    // With a share of 1 for the new figures, "running" figures are those of this batch.
    at::Tensor y = at::batch_norm(x, of[0], of[1], into[0], into[1], training, 1.0, kEpsilon, true);
    if (added.defined()) y.add_(added);
    switch (activation) {
      case Activation::kNone:
        return y;
      case Activation::kRelu:
        return y.relu_();
      case Activation::kRelu6:
        return at::relu6(y);
    }
    return y;
  }

  /// A linear layer of each sample's mean over all places. Torch's pooling layers are not
  /// deterministic on a GPU.
  at::Tensor classify(const at::Tensor& x) const {
    const at::Tensor means = x.mean({2, 3}, false, at::kFloat);
    if (learners == 1) return at::addmm(parameter[1], means, parameter[0]);
    const at::Tensor rows = means.view({learners, -1, means.size(1)});
    return at::baddbmm(parameter[1].unsqueeze(1), rows, parameter[0]).flatten(0, 1);
  }

  const at::Tensor* parameter;
  const at::Tensor* figure;
  bool training;
  std::int64_t learners;
};

}  // namespace train::models
