#pragma once

#include <cstdint>
#include <span>
#include <vector>

/// What the output of a network that was trained with CTC says (Graves et al., 2006): at each step
/// a symbol or nothing; a symbol that goes on counts once.
namespace train::decoding {

/// Logarithms of probabilities, a step after the other; class 0 is nothing.
struct CtcOutput {
  std::span<const float> log_probabilities;
  int classes = 0;

  std::int64_t steps() const {
    return static_cast<std::int64_t>(log_probabilities.size()) / classes;
  }
  float at(std::int64_t step, int label) const {
    return log_probabilities[static_cast<std::size_t>(step * classes + label)];
  }
};

/// The symbols of the most probable class of every step.
std::vector<int> decode_greedily(const CtcOutput& output);

/// The most probable symbols, over all ways to say them, of those that are found by keeping the
/// `width` most probable beginnings at each step.
std::vector<int> decode_by_beam(const CtcOutput& output, int width);

}  // namespace train::decoding
