#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "scalecom/comm/traffic.h"

namespace train::runs {

/// What one learner has moved for its gradients, from the communicator's own counters.
struct Tally {
  std::int64_t sent = 0;     ///< in all steps
  std::int64_t counted = 0;  ///< in the steps that are typical: after the warm-up, and not the
                             ///< first of a process, in which the ranks also compare their options
  std::int64_t steps = 0;    ///< how many those are
  std::int64_t most = 0;     ///< sent and received in any one of them
  std::int64_t inside = 0;  ///< sent in the same steps inside its group; all else is between groups

  void add(const scalecom::comm::Traffic& traffic, bool typical,
           const scalecom::comm::Traffic& inside_group = {});
};

/// For another number of ranks: each gets the mean, and the most that any had.
std::vector<Tally> divide_anew(std::span<const Tally> tallies, int ranks);

/// Bytes that one rank sent, averaged over ranks.
double bytes_per_rank(std::span<const Tally> tallies);
/// The same a typical step; nothing where there was none yet.
std::optional<double> bytes_per_rank_step(std::span<const Tally> tallies);
/// The most that any rank sent and received in a typical step; nothing where there was none yet.
std::optional<std::int64_t> max_rank_bytes(std::span<const Tally> tallies);
/// What crosses inside groups of learners in such a step.
std::optional<double> inside_bytes_per_rank_step(std::span<const Tally> tallies);
/// What a dense all-reduce of the gradient sends, averaged over ranks: between the groups, if
/// learners are divided into groups of `members`, each of which brings its share.
double dense_bytes_per_rank_step(std::int64_t parameters, int learners, int members = 1);

}  // namespace train::runs
