#include "scalecom/plan/model.h"

namespace scalecom::plan {

std::int64_t Layer::elements() const {
  std::int64_t sum = 0;
  for (const layout::Tensor& tensor : tensors) sum += tensor.elements();
  return sum;
}

std::int64_t Model::elements() const {
  std::int64_t sum = 0;
  for (const Layer& layer : layers) sum += layer.elements();
  return sum;
}

double Model::forward_flops() const {
  double sum = 0;
  for (const Layer& layer : layers) sum += layer.forward_flops;
  return sum;
}

}  // namespace scalecom::plan
