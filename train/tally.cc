#include "train/tally.h"

#include "scalecom/comm/traffic.h"

namespace train {

double bytes_per_rank(std::span<const Tally> tallies) {
  double sent = 0;
  for (const Tally& tally : tallies) sent += static_cast<double>(tally.sent);
  return sent / static_cast<double>(tallies.size());
}

std::optional<double> bytes_per_rank_step(std::span<const Tally> tallies) {
  double sent = 0;
  double steps = 0;
  for (const Tally& tally : tallies) {
    sent += static_cast<double>(tally.counted);
    steps += static_cast<double>(tally.steps);
  }
  if (steps == 0) return std::nullopt;
  return sent / steps;
}

double dense_bytes_per_rank_step(std::int64_t parameters, int learners) {
  double sent = 0;
  for (int rank = 0; rank < learners; ++rank) {
    sent +=
        static_cast<double>(scalecom::comm::all_reduce_traffic(parameters, learners, rank).sent);
  }
  return sent / learners;
}

}  // namespace train
