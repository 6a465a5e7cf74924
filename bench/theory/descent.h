#pragma once

#include <cstdint>
#include <string>

#include "bench/theory/problems.h"

namespace bench::theory {

/// Plain stochastic descent by several workers, each with its own samples and a method that takes
/// the mean of their gradients.
struct Descent {
  std::string method;  ///< "dense", or "scalecom,beta=0.1"; one value in `rate` is sent
  double rate = 1;
  int workers = 1;
  std::int64_t steps = 0;
  std::int64_t batch = 1;  ///< of one worker
  double learning_rate = 0;
  std::uint64_t seed = 0;
};

/// What Theorem 1 bounds: |the true gradient|^2, averaged over the weights of all steps, of which
/// `looks` evenly spread ones are looked at. 1 of them or more, steps at most.
double mean_squared_gradient(const Problem& problem, const Descent& descent, std::int64_t looks);

}  // namespace bench::theory
