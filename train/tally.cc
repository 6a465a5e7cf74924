#include "train/tally.h"

#include "scalecom/comm/traffic.h"

namespace train {

double bytes_per_rank(std::span<const Tally> tallies) {
  double sent = 0;
  for (const Tally& tally : tallies) sent += static_cast<double>(tally.sent);
  return sent / static_cast<double>(tallies.size());
}

namespace {

std::optional<double> per_step(std::span<const Tally> tallies, std::int64_t Tally::*what) {
  double sent = 0;
  double steps = 0;
  for (const Tally& tally : tallies) {
    sent += static_cast<double>(tally.*what);
    steps += static_cast<double>(tally.steps);
  }
  if (steps == 0) return std::nullopt;
  return sent / steps;
}

}  // namespace

std::optional<double> bytes_per_rank_step(std::span<const Tally> tallies) {
  return per_step(tallies, &Tally::counted);
}

std::optional<double> inside_bytes_per_rank_step(std::span<const Tally> tallies) {
  return per_step(tallies, &Tally::inside);
}

double dense_bytes_per_rank_step(std::int64_t parameters, int learners, int members) {
  const int groups = learners / members;
  double sent = 0;
  for (int group = 0; group < groups; ++group) {
    sent += static_cast<double>(scalecom::comm::all_reduce_traffic(parameters, groups, group).sent);
  }
  return sent / learners;
}

}  // namespace train
