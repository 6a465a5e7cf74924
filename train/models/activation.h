#pragma once

#include <cstdint>
#include <limits>

namespace train::models {

enum class Activation : std::uint8_t { kNone, kRelu, kRelu6 };

/// What it cuts off at.
constexpr float least(Activation activation) {
  return activation == Activation::kNone ? -std::numeric_limits<float>::infinity() : 0;
}
constexpr float most(Activation activation) {
  return activation == Activation::kRelu6 ? 6 : std::numeric_limits<float>::infinity();
}

/// What batch norm adds to a variance.
constexpr double kEpsilon = 1e-5;

}  // namespace train::models
