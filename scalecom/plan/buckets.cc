#include "scalecom/plan/buckets.h"

#include <algorithm>

namespace scalecom::plan {
namespace {

constexpr double kFirstBucketBytes = 1 << 20;

std::int64_t matrix_elements(const Layer& layer) {
  std::int64_t sum = 0;
  for (const layout::Tensor& tensor : layer.tensors) {
    if (tensor.shape.size() > 1) sum += tensor.elements();
  }
  return sum;
}

}  // namespace

std::vector<Bucket> cut_buckets(const Model& model, double bytes) {
  std::vector<Bucket> buckets;
  double room = 0;
  for (std::size_t part = 0; part < model.layers.size(); ++part) {
    const Layer& layer = model.layers[model.layers.size() - 1 - part];
    for (auto tensor = layer.tensors.rbegin(); tensor != layer.tensors.rend(); ++tensor) {
      if (room <= 0) {
        room = buckets.empty() && bytes == kBucketBytes ? kFirstBucketBytes : bytes;
        buckets.emplace_back();
      }
      buckets.back().tensors.push_back(*tensor);
      buckets.back().ready_after = part;
      room -= 4 * static_cast<double>(tensor->elements());
    }
  }
  return buckets;
}

std::vector<layout::Tensor> tensors_of(const Model& model, std::int64_t batch) {
  std::vector<layout::Tensor> tensors;
  for (const Layer& layer : model.layers) {
    const std::int64_t weights = std::max<std::int64_t>(1, matrix_elements(layer));
    const double flops =
        layer.forward_flops * static_cast<double>(batch) / static_cast<double>(weights);
    for (layout::Tensor tensor : layer.tensors) {
      tensor.flops_per_gradient = flops;
      tensors.push_back(std::move(tensor));
    }
  }
  return tensors;
}

}  // namespace scalecom::plan
