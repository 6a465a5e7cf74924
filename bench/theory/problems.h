#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

namespace bench::theory {

/// A mean of losses over samples, small enough that its true gradient can be had at any time.
class Problem {
 public:
  virtual ~Problem() = default;

  virtual std::int64_t parameters() const = 0;
  virtual std::int64_t samples() const = 0;
  /// Where descents begin.
  virtual void start(std::span<float> weights) const = 0;
  /// Of one sample.
  virtual double loss(std::span<const float> weights, std::int64_t sample) const = 0;
  /// Adds `factor` times one sample's gradient. Any thread may call it.
  virtual void add_gradient(std::span<const float> weights, std::int64_t sample, float factor,
                            std::span<float> gradient) const = 0;
};

/// Linear least squares with noise in what is to be met: convex.
std::unique_ptr<Problem> make_least_squares();
/// A network with one hidden layer of tanh that learns what another one like it says: not convex.
std::unique_ptr<Problem> make_small_network();

/// |the gradient over all samples|^2.
double squared_gradient(const Problem& problem, std::span<const float> weights);

}  // namespace bench::theory
