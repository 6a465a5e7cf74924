#include "scalecom/plan/stragglers.h"

#include <cmath>
#include <numbers>

namespace scalecom::plan {

// The mean of the largest of n draws: the integral of x(z) n phi(z) Phi(z)^(n-1) over z.
double slowest_of(int workers, double deviation) {
  if (workers < 2 || deviation <= 0) return 1;
  constexpr double kReach = 12;
  constexpr int kSlices = 4800;
  constexpr double kWidth = 2 * kReach / kSlices;
  const double variance = std::log1p(deviation * deviation);
  const double sigma = std::sqrt(variance);
  double sum = 0;
  for (int i = 0; i < kSlices; ++i) {
    const double z = -kReach + (i + 0.5) * kWidth;
    const double density = std::exp(-z * z / 2) / std::sqrt(2 * std::numbers::pi);
    const double below = std::erfc(-z / std::numbers::sqrt2) / 2;
    sum += std::exp(sigma * z - variance / 2) * workers * density * std::pow(below, workers - 1);
  }
  return sum * kWidth;
}

}  // namespace scalecom::plan
