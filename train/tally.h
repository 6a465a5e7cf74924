#pragma once

#include <cstdint>
#include <optional>
#include <span>

namespace train {

/// What one learner has sent for its gradients, from the communicator's own counters.
struct Tally {
  std::int64_t sent = 0;     ///< in all steps
  std::int64_t counted = 0;  ///< in the steps that are typical: after the warm-up, and not the
                             ///< first of a process, in which the ranks also compare their options
  std::int64_t steps = 0;    ///< how many those are

  void add(std::int64_t bytes, bool typical) {
    sent += bytes;
    if (!typical) return;
    counted += bytes;
    ++steps;
  }
};

/// Bytes that one rank sent, averaged over ranks.
double bytes_per_rank(std::span<const Tally> tallies);
/// The same a typical step; nothing where there was none yet.
std::optional<double> bytes_per_rank_step(std::span<const Tally> tallies);
/// What a dense all-reduce of the gradient sends, averaged over ranks.
double dense_bytes_per_rank_step(std::int64_t parameters, int learners);

}  // namespace train
