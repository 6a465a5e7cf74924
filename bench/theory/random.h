#pragma once

#include <cmath>
#include <cstdint>
#include <numbers>

#include "scalecom/core/hash.h"

namespace bench::theory {

/// Numbers that follow from a seed alone, the same with every compiler.
class Random {
 public:
  explicit Random(std::uint64_t seed) : seed_(seed) {}

  std::uint64_t bits() { return scalecom::core::combine(seed_, count_++); }
  /// In (0, 1).
  double uniform() { return (static_cast<double>(bits() >> 11) + 0.5) / 0x1p53; }
  double normal() {
    const double radius = std::sqrt(-2 * std::log(uniform()));
    return radius * std::cos(2 * std::numbers::pi * uniform());
  }

 private:
  std::uint64_t seed_;
  std::uint64_t count_ = 0;
};

}  // namespace bench::theory
