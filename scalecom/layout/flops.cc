#include "scalecom/layout/flops.h"

#include <cmath>
#include <cstddef>
#include <functional>
#include <map>
#include <queue>
#include <utility>

namespace scalecom::layout {
namespace {

std::int64_t dense_or(std::int64_t rate, std::int64_t elements) {
  return elements < rate ? 1 : rate;
}

std::int64_t values(const Share& share, std::int64_t rate) {
  return (share.elements + rate - 1) / rate;
}

// The state of all rates as c grows from 0. The values sent change only where a rounded rate does,
// at c = (rate + 1/2) * flops, so c goes from one such point to the next. Searching by halves would
// not do: a tensor that becomes shorter than its rate turns dense, so the values sent can grow.
class Walk {
 public:
  explicit Walk(std::span<const Share> shares) : shares_(shares) {
    std::map<double, std::vector<std::size_t>> by_flops;
    for (std::size_t i = 0; i < shares.size(); ++i) {
      by_flops[shares[i].flops_per_gradient].push_back(i);
      sent_ += shares[i].elements;
    }
    for (auto& [flops, members] : by_flops) {
      next_.emplace(1.5 * flops, groups_.size());
      groups_.push_back({flops, 1, std::move(members)});
    }
  }

  bool at_end() const { return next_.empty(); }
  std::int64_t sent() const { return sent_; }

  void step() {
    const std::size_t index = next_.top().second;
    next_.pop();
    Group& group = groups_[index];
    sent_ -= sent_by(group);
    ++group.rate;
    sent_ += sent_by(group);
    if (group.rate < kLargestFlopsRate) {
      next_.emplace((static_cast<double>(group.rate) + 0.5) * group.flops, index);
    }
  }

  std::vector<std::int64_t> rates() const {
    std::vector<std::int64_t> rates(shares_.size());
    for (const Group& group : groups_) {
      for (const std::size_t i : group.members) {
        rates[i] = dense_or(group.rate, shares_[i].elements);
      }
    }
    return rates;
  }

  // The rates where only those tensors take the next step with which the values sent come nearer
  // to the target.
  std::vector<std::int64_t> rates_within_step(double target) const {
    std::vector<std::int64_t> result = rates();
    const Group& group = groups_[next_.top().second];
    double over = static_cast<double>(sent_) - target;
    for (const std::size_t i : group.members) {
      const std::int64_t after = dense_or(group.rate + 1, shares_[i].elements);
      const double changed =
          over + static_cast<double>(values(shares_[i], after) - values(shares_[i], result[i]));
      if (std::abs(changed) >= std::abs(over)) continue;
      over = changed;
      result[i] = after;
    }
    return result;
  }

 private:
  // Tensors of equal FLOPs, whose rates are equal at every c.
  struct Group {
    double flops;
    std::int64_t rate;
    std::vector<std::size_t> members;
  };

  std::int64_t sent_by(const Group& group) const {
    std::int64_t sent = 0;
    for (const std::size_t i : group.members) {
      sent += values(shares_[i], dense_or(group.rate, shares_[i].elements));
    }
    return sent;
  }

  std::span<const Share> shares_;
  std::vector<Group> groups_;
  using Point = std::pair<double, std::size_t>;  // c, and the group that changes there
  std::priority_queue<Point, std::vector<Point>, std::greater<>> next_;
  std::int64_t sent_ = 0;
};

// Equal layers part only for more than this of the values that should be sent.
constexpr double kTolerance = 0.005;

}  // namespace

std::vector<std::int64_t> flops_rates(std::span<const Share> shares, double rate) {
  double elements = 0;
  for (const Share& share : shares) elements += static_cast<double>(share.elements);
  const double target = elements / rate;
  const auto over = [&](const Walk& walk) { return static_cast<double>(walk.sent()) - target; };

  Walk scout(shares);
  std::int64_t steps = 0;
  std::int64_t best_steps = 0;
  double best_miss = std::abs(over(scout));
  while (!scout.at_end() && over(scout) > 0) {
    scout.step();
    ++steps;
    if (const double miss = std::abs(over(scout)); miss < best_miss) {
      best_miss = miss;
      best_steps = steps;
    }
  }

  const bool apart = best_miss > kTolerance * target && over(scout) < 0;
  Walk walk(shares);
  for (std::int64_t i = 0; i < (apart ? steps - 1 : best_steps); ++i) walk.step();
  return apart ? walk.rates_within_step(target) : walk.rates();
}

}  // namespace scalecom::layout
