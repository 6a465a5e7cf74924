#include "train/models/model.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace train::models {

using scalecom::layout::Tensor;

std::int64_t Model::figure_elements() const {
  return models::elements(figures_);
}

void Model::initialise_figures(std::span<float> figures) const {
  for (const Tensor& tensor : figures_) {
    const auto part = figures.first(static_cast<std::size_t>(tensor.elements()));
    figures = figures.subspan(part.size());
    std::fill(part.begin(), part.end(), tensor.name.ends_with(".variance") ? 1.0F : 0.0F);
  }
}

void Model::add(std::string name, std::vector<std::int64_t> shape, std::int64_t positions,
                float first) {
  // A multiplication and an addition for each weight, output position and sample.
  const auto flops = static_cast<double>(2 * positions * batch_);
  Tensor tensor{std::move(name), std::move(shape), flops};
  if (tensor.shape.size() == 1) {
    parameters_.add_constant(std::move(tensor), first);
    return;
  }
  const std::int64_t fan_in = tensor.elements() / tensor.shape.back();
  const double bound = std::sqrt(6 / static_cast<double>(fan_in));
  parameters_.add_noise(std::move(tensor), static_cast<float>(bound));
}

void Model::add_convolution(const std::string& name, std::int64_t kernel, std::int64_t inputs,
                            std::int64_t outputs, std::int64_t positions) {
  add(name + ".weight", {kernel, kernel, inputs, outputs}, positions, 0);
}

void Model::add_linear(const std::string& name, std::int64_t inputs, std::int64_t outputs) {
  add(name + ".weight", {inputs, outputs}, 1, 0);
}

void Model::add_bias(const std::string& name, std::int64_t outputs, std::int64_t positions) {
  add(name + ".bias", {outputs}, positions, 0);
}

void Model::add_batch_norm(const std::string& name, std::int64_t channels, float scale) {
  add(name + ".scale", {channels}, 1, scale);
  add(name + ".bias", {channels}, 1, 0);
  figures_.push_back({name + ".mean", {channels}});
  figures_.push_back({name + ".variance", {channels}});
}

}  // namespace train::models
