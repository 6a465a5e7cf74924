#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "scalecom/layout/layout.h"

namespace train::models {

/// The tensors of a model, in the order in which it uses them, and what they begin with.
class Parameters {
 public:
  /// `value` everywhere.
  void add_constant(scalecom::layout::Tensor tensor, float value);
  /// Uniform noise in [-bound, bound): a function of the seed and the tensor's name.
  void add_noise(scalecom::layout::Tensor tensor, float bound);

  std::span<const scalecom::layout::Tensor> tensors() const { return tensors_; }
  std::int64_t elements() const;

  void initialise(std::uint64_t seed, std::span<float> weights) const;

 private:
  struct Start {
    float value = 0;
    float bound = 0;
  };

  std::vector<scalecom::layout::Tensor> tensors_;
  std::vector<Start> starts_;
};

/// The elements of all.
std::int64_t elements(std::span<const scalecom::layout::Tensor> tensors);

}  // namespace train::models
