#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "scalecom/methods/contraction.h"

/// What the paper's lemmas are about: one step of ScaleCom on vectors that workers bring.
namespace bench::theory {

/// What entries are drawn from, all with mean 0.
enum class Distribution { kNormal, kUniform, kLaplace, kStudent3, kCauchy, kSparse };
inline constexpr Distribution kDistributions[] = {Distribution::kNormal,  Distribution::kUniform,
                                                  Distribution::kLaplace, Distribution::kStudent3,
                                                  Distribution::kCauchy,  Distribution::kSparse};
std::string to_string(Distribution distribution);

using Vectors = std::vector<std::vector<float>>;  ///< one a worker

struct Draw {
  Distribution distribution = Distribution::kNormal;
  int workers = 1;
  std::int64_t elements = 0;
  /// Of an entry at one worker with the same entry at another, where a variance exists: each is a
  /// part that all share and a part of its own.
  double correlation = 0;
  std::uint64_t seed = 0;
};
Vectors draw(const Draw& draw);

/// The mean of x_i . x_j over pairs of different workers, over the mean of |x_i|^2. 0 for one
/// worker.
double correlation_of(const Vectors& vectors);

/// A step in which the vectors are all that there is to send, so that y is their mean.
struct Step {
  scalecom::methods::Contraction of_mean;
  /// sum |x_i - what was sent of it|^2 / sum |x_i|^2: the contraction of workers by themselves.
  double of_workers = 0;
};
/// That step with one leader after the other. `select` as in the method's option.
std::vector<Step> steps_by_leader(const Vectors& vectors, double rate, const std::string& select);

/// The mean over leaders, each of whom leads as often as any other.
Step mean(const std::vector<Step>& steps);

/// Lemma 2's bound on the contraction of the mean: workers that each keep all but a share
/// `of_workers`, and are correlated. Over 1 it says nothing.
double lemma2_bound(double of_workers, double correlation, int workers);

}  // namespace bench::theory
