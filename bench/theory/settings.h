#pragma once

#include <array>
#include <cmath>
#include <cstdint>
#include <memory>

#include "bench/theory/descent.h"

/// With what the figures of docs/theory.md are made; the tests look at the same, with fewer seeds.
namespace bench::theory {

inline constexpr std::int64_t kElements = 2000;
inline constexpr double kRate = 20;

inline constexpr std::array kWorkers = {1, 2, 4, 8, 16, 32, 64};
inline constexpr std::array kCorrelations = {0.0, 0.1, 0.2, 0.3, 0.4,  0.5,
                                             0.6, 0.7, 0.8, 0.9, 0.95, 1.0};

/// A problem, and the learning rate of one worker in a descent of kSteps.
struct Setting {
  const char* name;
  std::unique_ptr<Problem> (*make)();
  double learning_rate;
};
inline constexpr std::int64_t kSteps = 500;
inline constexpr std::int64_t kLooks = 100;
inline constexpr Setting kConvex{"least squares", make_least_squares, 0.002};
inline constexpr Setting kNotConvex{"small network", make_small_network, 0.006};

/// With Theorem 1's learning rate, which goes as the root of the workers over the steps.
inline Descent descent_of(const Setting& setting, const char* method, int workers,
                          std::uint64_t seed, std::int64_t steps = kSteps) {
  Descent descent;
  descent.method = method;
  descent.rate = kRate;
  descent.workers = workers;
  descent.steps = steps;
  descent.batch = 4;
  const double share = static_cast<double>(workers) * kSteps / static_cast<double>(steps);
  descent.learning_rate = setting.learning_rate * std::sqrt(share);
  descent.seed = seed;
  return descent;
}

}  // namespace bench::theory
