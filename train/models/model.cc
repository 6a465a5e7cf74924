#include "train/models/model.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "scalecom/core/hash.h"

namespace train::models {
namespace {

namespace core = scalecom::core;
using scalecom::layout::Tensor;

/// A number in [-1, 1) for every (seed, index).
float noise(std::uint64_t seed, std::int64_t index) {
  const std::uint64_t bits = core::combine(seed, static_cast<std::uint64_t>(index));
  return static_cast<float>(static_cast<double>(bits >> 40) / (1 << 23) - 1);
}

std::int64_t sum(std::span<const Tensor> tensors) {
  std::int64_t elements = 0;
  for (const Tensor& tensor : tensors) elements += tensor.elements();
  return elements;
}

}  // namespace

std::int64_t Model::elements() const {
  return sum(tensors_);
}

std::int64_t Model::figure_elements() const {
  return sum(figures_);
}

void Model::initialise(std::uint64_t seed, std::span<float> weights) const {
  for (std::size_t t = 0; t < tensors_.size(); ++t) {
    const Tensor& tensor = tensors_[t];
    const auto part = weights.first(static_cast<std::size_t>(tensor.elements()));
    weights = weights.subspan(part.size());
    if (tensor.shape.size() == 1) {
      std::fill(part.begin(), part.end(), first_[t]);
      continue;
    }
    const std::int64_t fan_in = tensor.elements() / tensor.shape.back();
    const auto bound = static_cast<float>(std::sqrt(6 / static_cast<double>(fan_in)));
    const std::uint64_t own_seed = core::combine(seed, core::hash(tensor.name));
    for (std::int64_t i = 0; i < tensor.elements(); ++i) {
      part[static_cast<std::size_t>(i)] = bound * noise(own_seed, i);
    }
  }
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
  tensors_.push_back({std::move(name), std::move(shape), flops});
  first_.push_back(first);
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
