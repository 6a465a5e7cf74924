#pragma once

#include <cstdint>
#include <string>

#include "comparison/probe.h"

namespace comparison {

/// What a method costs a rank by itself, in time and memory.
struct LocalStep {
  double ns_per_element = 0;
  double copy_ns_per_element = 0;  ///< of the same gradient to another array, in the same run
  std::int64_t method_bytes = 0;   ///< that the method adds to what holds the gradient
  std::int64_t elements = 0;       ///< of the gradient that this was measured with
};

/// Times reduce() in a world of one, which does all of the method but talk, past its warm-up. Step
/// and copy take turns; the figures are medians. The gradient is the model's, as often as it takes
/// to have `least` elements: more than a processor keeps at hand.
LocalStep measure_local_step(Probe& probe, const std::string& spec, std::int64_t least,
                             int repeats);

}  // namespace comparison
