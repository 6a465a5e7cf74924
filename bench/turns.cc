#include "bench/turns.h"

#include <array>
#include <vector>

#include "bench/median.h"

namespace bench {
namespace {

constexpr int kWarmUps = 2;

/// Of each repeat.
double median_ratio(std::vector<double> times, const std::vector<double>& to) {
  for (std::size_t i = 0; i < times.size(); ++i) times[i] /= to[i];
  return median(std::move(times));
}

}  // namespace

void time_in_turns(const Passes& passes, Against against, int repeats,
                   const std::function<double(const std::function<void()>& pass)>& milliseconds,
                   const std::function<void(int done, int all)>& progress, StepFigures& figures) {
  const std::array all = {&passes.leader, &passes.follower, &passes.plain, &passes.copy,
                          &passes.floor};
  std::array<std::vector<double>, all.size()> times;
  for (int round = 0; round < kWarmUps + repeats; ++round) {
    for (std::size_t i = 0; i < all.size(); ++i) {
      const std::size_t pass = (i + static_cast<std::size_t>(round)) % all.size();
      const double taken = milliseconds(*all[pass]);
      if (round >= kWarmUps) times[pass].push_back(taken);
    }
    progress(round + 1, kWarmUps + repeats);
  }
  const auto& [leader, follower, plain, copy, floor] = times;
  const std::vector<double>& whole = against == Against::kPlain ? plain : floor;
  figures.leader_ms = median(leader);
  figures.follower_ms = median(follower);
  figures.plain_ms = median(plain);
  figures.copy_ms = median(copy);
  figures.floor_ms = median(floor);
  figures.leader_ratio = median_ratio(leader, whole);
  figures.follower_ratio = median_ratio(follower, whole);
}

}  // namespace bench
