#include "train/models/layers/linear.h"

#include <ATen/ATen.h>

namespace train::models::layers {

at::Tensor linear(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias) {
  const at::Tensor y =
      weight.dim() == 2
          ? at::addmm(bias, x.flatten(0, 1), weight)
          : at::baddbmm(bias.unsqueeze(1), x.reshape({weight.size(0), -1, x.size(2)}), weight);
  return y.view({x.size(0), x.size(1), -1});
}

}  // namespace train::models::layers
