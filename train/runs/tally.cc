#include "train/runs/tally.h"

#include <algorithm>

namespace train::runs {

void Tally::add(const scalecom::comm::Traffic& traffic, bool typical,
                const scalecom::comm::Traffic& inside_group) {
  sent += traffic.sent;
  if (!typical) return;
  counted += traffic.sent;
  inside += inside_group.sent;
  ++steps;
  most = std::max(most, traffic.sent + traffic.received);
}

std::vector<Tally> divide_anew(std::span<const Tally> tallies, int ranks) {
  Tally each;
  for (const Tally& tally : tallies) {
    each.sent += tally.sent;
    each.counted += tally.counted;
    each.steps += tally.steps;
    each.inside += tally.inside;
    each.most = std::max(each.most, tally.most);
  }
  const auto former = static_cast<std::int64_t>(tallies.size());
  for (std::int64_t* sum : {&each.sent, &each.counted, &each.steps, &each.inside}) *sum /= former;
  return std::vector<Tally>(static_cast<std::size_t>(ranks), each);
}

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

std::optional<std::int64_t> max_rank_bytes(std::span<const Tally> tallies) {
  std::optional<std::int64_t> most;
  for (const Tally& tally : tallies) {
    if (tally.steps > 0) most = std::max(most.value_or(0), tally.most);
  }
  return most;
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

}  // namespace train::runs
