#pragma once

#include <cstdint>
#include <span>

namespace comparison {

/// How a method's traffic grows with the number of ranks.
enum class Growth : std::uint8_t { kConstant, kLog, kLinear };

/// "constant", "log n", "n"
const char* to_string(Growth growth);

/// What the busiest rank of so many sends and receives in a step.
struct Busiest {
  int ranks = 2;
  double bytes = 0;
};

/// The shape that fits best, once each figure is divided by 2(n-1)/n, what a ring takes of n ranks.
///
/// a + b log2(n) and a + b n are fitted by least squares. The one that leaves less is the growth,
/// where it is one: b is positive, the fit rises by a twentieth or more from the fewest ranks to
/// the most, and it explains four fifths of how the figures vary. Otherwise they are constant.
///
/// core::UsageError for fewer than three numbers of ranks, or one under 2.
Growth fit_growth(std::span<const Busiest> figures);

}  // namespace comparison
