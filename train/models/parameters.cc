#include "train/models/parameters.h"

#include <utility>

#include "scalecom/core/hash.h"

namespace train::models {
namespace {

namespace core = scalecom::core;
using scalecom::layout::Tensor;

/// A number in [-1, 1) for every (seed, index).
float noise(std::uint64_t seed, std::uint64_t index) {
  const std::uint64_t bits = core::combine(seed, index);
  return static_cast<float>(static_cast<double>(bits >> 40) / (1 << 23) - 1);
}

}  // namespace

void Parameters::add_constant(Tensor tensor, float value) {
  tensors_.push_back(std::move(tensor));
  starts_.push_back({value, 0});
}

void Parameters::add_noise(Tensor tensor, float bound) {
  tensors_.push_back(std::move(tensor));
  starts_.push_back({0, bound});
}

std::int64_t Parameters::elements() const {
  return models::elements(tensors_);
}

void Parameters::initialise(std::uint64_t seed, std::span<float> weights) const {
  std::size_t at = 0;
  for (std::size_t t = 0; t < tensors_.size(); ++t) {
    const auto [value, bound] = starts_[t];
    const std::uint64_t own_seed = core::combine(seed, core::hash(tensors_[t].name));
    const auto size = static_cast<std::uint64_t>(tensors_[t].elements());
    for (std::uint64_t i = 0; i < size; ++i) {
      weights[at++] = bound > 0 ? bound * noise(own_seed, i) : value;
    }
  }
}

std::int64_t elements(std::span<const Tensor> tensors) {
  std::int64_t sum = 0;
  for (const Tensor& tensor : tensors) sum += tensor.elements();
  return sum;
}

}  // namespace train::models
