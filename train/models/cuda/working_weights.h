#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <span>
#include <vector>

#include "scalecom/core/array.h"
#include "scalecom/layout/layout.h"
#include "train/models/cuda/batches.h"
#include "train/models/cuda/torch_device.h"

namespace train::models::cuda {

/// The weights as torch computes with them: those of a convolution as (outputs, height, width,
/// inputs), which is "channels last", each tensor aligned.
class WorkingWeights {
 public:
  WorkingWeights(scalecom::core::Device device, std::span<const scalecom::layout::Tensor> tensors,
                 const float* weights)
      : tensors_(tensors) {
    std::vector<Matrix> matrices;
    std::int64_t at = 0;
    for (const scalecom::layout::Tensor& tensor : tensors) {
      const std::int64_t outputs = tensor.shape.size() == 4 ? tensor.shape.back() : 1;
      const std::int64_t inputs = tensor.elements() / outputs;
      matrices.push_back(outputs > 1 ? Matrix{weights, at, inputs, outputs}
                                     : Matrix{weights, at, 1, tensor.elements()});
      begins_.push_back(at);
      weights += tensor.elements();
      at += (tensor.elements() + kAlignment - 1) / kAlignment * kAlignment;
    }
    values_ = scalecom::core::Array<float>(device, at);
    refresh_ = Transposition(device, matrices);
  }

  void refresh(const scalecom::core::Stream& stream) { refresh_.run(values_.data(), stream); }

  /// New leaves of the shapes of the model's tensors, which share the memory.
  std::vector<at::Tensor> leaves() {
    std::vector<at::Tensor> leaves;
    for (std::size_t i = 0; i < tensors_.size(); ++i) {
      const std::vector<std::int64_t>& shape = tensors_[i].shape;
      std::vector<std::int64_t> strides{1};
      if (shape.size() == 2) strides = {shape[1], 1};
      if (shape.size() == 4) {
        strides = {shape[1] * shape[2], shape[2], 1, shape[0] * shape[1] * shape[2]};
      }
      float* const data = values_.data() + begins_[i];
      leaves.push_back(view(values_.device(), data, shape, strides));
      leaves.back().set_requires_grad(true);
    }
    return leaves;
  }

  /// Such leaves for each learner, in a first dimension that repeats the same numbers: each
  /// learner's gradients are apart.
  std::vector<at::Tensor> leaves(std::int64_t learners) {
    std::vector<at::Tensor> views;
    for (const at::Tensor& leaf : leaves()) {
      std::vector<std::int64_t> shape = leaf.sizes().vec();
      shape.insert(shape.begin(), learners);
      views.push_back(leaf.detach().unsqueeze(0).expand(shape));
      views.back().set_requires_grad(true);
    }
    return views;
  }

 private:
  // Elements; cuDNN's fastest kernels want aligned weights.
  static constexpr std::int64_t kAlignment = 64;

  std::span<const scalecom::layout::Tensor> tensors_;
  std::vector<std::int64_t> begins_;
  scalecom::core::Array<float> values_;
  Transposition refresh_;
};

/// Puts gradients as torch has them, those of convolutions as (outputs, height, width, inputs), one
/// after the other into an array in the order of the model's tensors. They are contiguous and stay
/// where they are.
inline Transposition into_one_array(scalecom::core::Device device,
                                    std::span<const at::Tensor> parts) {
  std::vector<Matrix> matrices;
  std::int64_t at = 0;
  for (const at::Tensor& part : parts) {
    const std::int64_t outputs = part.dim() == 4 ? part.size(0) : 1;
    matrices.push_back({part.const_data_ptr<float>(), at, outputs, part.numel() / outputs});
    at += part.numel();
  }
  return {device, matrices};
}

}  // namespace train::models::cuda
