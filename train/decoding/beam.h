#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace train::decoding {

/// How a hypothesis may go on.
struct Candidate {
  int parent = 0;  ///< the live hypothesis that it continues
  int token = 0;
  double log_probability = 0;  ///< of the token alone
};

/// Looks for the most probable sequence of tokens, by keeping the `width` best beginnings. Those
/// that have ended are compared by their log-probability over ((5 + length) / 6) ^ penalty, length
/// being that without the end (Wu et al., 2016).
///
/// Whoever uses it asks a network how the live() hypotheses go on, until none is left.
class BeamSearch {
 public:
  struct Options {
    int width = 4;
    int end = 0;  ///< the token that ends a sequence
    std::int64_t longest = 1;
    double penalty = 0.6;
  };

  explicit BeamSearch(const Options& options);

  struct Hypothesis {
    std::vector<int> tokens;
    double log_probability = 0;
    int parent = 0;  ///< its index among the hypotheses of the step before
  };
  /// The best first, `width` at most, and all of one length. None once nothing can become better
  /// than what has ended, or the longest are reached.
  const std::vector<Hypothesis>& live() const { return live_; }

  /// Takes each live hypothesis' `width` + 1 most probable ways to go on, or all where there are
  /// fewer, in any order.
  void advance(std::span<const Candidate> candidates);

  /// The best that has ended; where none has, the best of the longest.
  const std::vector<int>& best() const { return best_; }

 private:
  double score(double log_probability, std::size_t length) const;
  void offer(const Hypothesis& ended);

  Options options_;
  std::vector<Hypothesis> live_;
  std::vector<int> best_;
  double best_score_;
};

}  // namespace train::decoding
