#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "comparison/probe.h"

namespace comparison {

/// The worlds that every method is run in, however few learners a comparison trains.
inline constexpr std::array kWorlds{2, 4, 8, 16, 32, 64};

/// Steps that are counted.
constexpr int kTrafficSteps = 3;

/// What a method really moves among so many ranks, from the communicators' own counters.
struct Moved {
  int ranks = 2;
  double bytes_per_rank_step = 0;   ///< sent, averaged over ranks and steps
  std::int64_t max_rank_bytes = 0;  ///< sent and received by any one rank in a step
};

/// Runs the method as `ranks` threads of this process, past its warm-up, on the probe's gradients.
/// One step, in which the ranks also compare their options, goes before those that are counted.
Moved measure_traffic(Probe& probe, const std::string& spec, int ranks);

/// Mini-batches that this computes.
constexpr std::int64_t traffic_batches(int ranks) {
  return std::int64_t{ranks} * (kTrafficSteps + 1);
}

}  // namespace comparison
