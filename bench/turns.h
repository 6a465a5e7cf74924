#pragma once

#include <functional>

#include "bench/step.h"

namespace bench {

/// What is timed: a step, and what it is compared with.
struct Passes {
  std::function<void()> leader;
  std::function<void()> follower;
  std::function<void()> plain;
  std::function<void()> copy;
  std::function<void()> floor;
};

/// What the ratios are to.
enum class Against { kPlain, kFloor };

/// Times the passes in turns, in which each comes after each of the others, and fills in medians
/// and ratios. `milliseconds(pass)` runs one, from a gradient that is freshly written.
void time_in_turns(const Passes& passes, Against against, int repeats,
                   const std::function<double(const std::function<void()>& pass)>& milliseconds,
                   const std::function<void(int done, int all)>& progress, StepFigures& figures);

}  // namespace bench
