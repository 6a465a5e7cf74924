#include "train/decoding/beam.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <tuple>
#include <utility>

namespace train::decoding {

BeamSearch::BeamSearch(const Options& options)
    : options_(options), live_(1), best_score_(-std::numeric_limits<double>::infinity()) {}

double BeamSearch::score(double log_probability, std::size_t length) const {
  return log_probability / std::pow((5 + static_cast<double>(length)) / 6, options_.penalty);
}

void BeamSearch::offer(const Hypothesis& ended) {
  const double own = score(ended.log_probability, ended.tokens.size());
  if (own <= best_score_) return;
  best_score_ = own;
  best_ = ended.tokens;
}

void BeamSearch::advance(std::span<const Candidate> candidates) {
  struct Next {
    double log_probability;
    int parent;
    int token;
  };
  std::vector<Next> next;
  for (const Candidate& candidate : candidates) {
    const Hypothesis& from = live_.at(static_cast<std::size_t>(candidate.parent));
    next.push_back(
        {from.log_probability + candidate.log_probability, candidate.parent, candidate.token});
  }
  std::sort(next.begin(), next.end(), [](const Next& a, const Next& b) {
    return std::tuple(-a.log_probability, a.parent, a.token) <
           std::tuple(-b.log_probability, b.parent, b.token);
  });

  std::vector<Hypothesis> live;
  for (const Next& way : next) {
    if (live.size() == static_cast<std::size_t>(options_.width)) break;
    Hypothesis grown = live_[static_cast<std::size_t>(way.parent)];
    grown.log_probability = way.log_probability;
    grown.parent = way.parent;
    if (way.token == options_.end) {
      offer(grown);
      continue;
    }
    grown.tokens.push_back(way.token);
    live.push_back(std::move(grown));
  }
  const auto longest = static_cast<std::size_t>(options_.longest);
  const bool may_grow = !live.empty() && live.front().tokens.size() < longest;
  // Probabilities only fall; the longest a hypothesis can become is the best it can be divided by.
  const bool may_win = !live.empty() && score(live.front().log_probability, longest) > best_score_;
  if (!may_grow && !live.empty() && std::isinf(best_score_)) offer(live.front());
  if (!may_grow || !may_win) live.clear();
  live_ = std::move(live);
}

}  // namespace train::decoding
