#include "bench/theory/problems.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "bench/theory/random.h"

namespace bench::theory {
namespace {

/// Samples of features and of what is to be said of each.
struct Data {
  std::int64_t features;
  std::vector<float> inputs;
  std::vector<float> targets;

  std::span<const float> input(std::int64_t sample) const {
    return {inputs.data() + sample * features, static_cast<std::size_t>(features)};
  }
  float target(std::int64_t sample) const { return targets[static_cast<std::size_t>(sample)]; }
  std::int64_t samples() const { return static_cast<std::int64_t>(targets.size()); }
};

float dot(std::span<const float> a, std::span<const float> b) {
  float sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

double half_square(double error) {
  return 0.5 * error * error;
}

class LeastSquares final : public Problem {
 public:
  LeastSquares() {
    Random random(1);
    std::vector<float> truth(kParameters);
    for (float& w : truth) w = static_cast<float>(random.normal());
    for (std::int64_t sample = 0; sample < kSamples; ++sample) {
      for (std::int64_t i = 0; i < kParameters; ++i) {
        // Features of different sizes: some directions are learned sooner than others.
        const double size = std::pow(10.0, -0.5 * static_cast<double>(i) / kParameters);
        data_.inputs.push_back(static_cast<float>(size * random.normal()));
      }
      const double noise = kNoise * random.normal();
      data_.targets.push_back(dot(data_.input(sample), truth) + static_cast<float>(noise));
    }
  }

  std::int64_t parameters() const override { return kParameters; }
  std::int64_t samples() const override { return kSamples; }
  void start(std::span<float> weights) const override {
    std::fill(weights.begin(), weights.end(), 0.0F);
  }
  double loss(std::span<const float> weights, std::int64_t sample) const override {
    return half_square(dot(data_.input(sample), weights) - data_.target(sample));
  }
  void add_gradient(std::span<const float> weights, std::int64_t sample, float factor,
                    std::span<float> gradient) const override {
    const auto input = data_.input(sample);
    const float error = factor * (dot(input, weights) - data_.target(sample));
    for (std::size_t i = 0; i < input.size(); ++i) gradient[i] += error * input[i];
  }

 private:
  static constexpr std::int64_t kParameters = 200;
  static constexpr std::int64_t kSamples = 2000;
  static constexpr double kNoise = 4;

  Data data_{kParameters, {}, {}};
};

class SmallNetwork final : public Problem {
 public:
  SmallNetwork() {
    Random random(2);
    std::vector<float> teacher(kParameters);
    for (float& w : teacher) w = static_cast<float>(random.normal());
    scale(teacher);
    for (std::int64_t sample = 0; sample < kSamples; ++sample) {
      for (std::size_t i = 0; i < kInputs; ++i) {
        data_.inputs.push_back(static_cast<float>(random.normal()));
      }
      Hidden hidden;
      const double noise = kNoise * random.normal();
      data_.targets.push_back(say(teacher, data_.input(sample), hidden) +
                              static_cast<float>(noise));
    }
  }

  std::int64_t parameters() const override { return kParameters; }
  std::int64_t samples() const override { return kSamples; }
  void start(std::span<float> weights) const override {
    Random random(3);
    for (float& w : weights) w = static_cast<float>(random.normal());
    scale(weights);
  }
  double loss(std::span<const float> weights, std::int64_t sample) const override {
    Hidden hidden;
    return half_square(say(weights, data_.input(sample), hidden) - data_.target(sample));
  }
  void add_gradient(std::span<const float> weights, std::int64_t sample, float factor,
                    std::span<float> gradient) const override {
    Hidden hidden;
    const auto input = data_.input(sample);
    const float error = factor * (say(weights, input, hidden) - data_.target(sample));
    for (std::size_t h = 0; h < kHidden; ++h) {
      gradient[kFirst + h] += error * hidden[h];
      const float back = error * weights[kFirst + h] * (1 - hidden[h] * hidden[h]);
      for (std::size_t i = 0; i < kInputs; ++i) gradient[h * kInputs + i] += back * input[i];
    }
  }

 private:
  static constexpr std::size_t kInputs = 12;
  static constexpr std::size_t kHidden = 16;
  static constexpr std::size_t kFirst = kInputs * kHidden;  // of the second layer's weights
  static constexpr std::int64_t kParameters = kFirst + kHidden;
  static constexpr std::int64_t kSamples = 1000;
  static constexpr double kNoise = 0.5;
  using Hidden = float[kHidden];

  static void scale(std::span<float> weights) {
    for (std::size_t i = 0; i < weights.size(); ++i) {
      weights[i] /= std::sqrt(static_cast<float>(i < kFirst ? kInputs : kHidden));
    }
  }

  static float say(std::span<const float> weights, std::span<const float> input, Hidden& hidden) {
    float sum = 0;
    for (std::size_t h = 0; h < kHidden; ++h) {
      hidden[h] = std::tanh(dot(weights.subspan(h * kInputs, kInputs), input));
      sum += weights[kFirst + h] * hidden[h];
    }
    return sum;
  }

  Data data_{kInputs, {}, {}};
};

}  // namespace

std::unique_ptr<Problem> make_least_squares() {
  return std::make_unique<LeastSquares>();
}

std::unique_ptr<Problem> make_small_network() {
  return std::make_unique<SmallNetwork>();
}

double squared_gradient(const Problem& problem, std::span<const float> weights) {
  std::vector<float> gradient(weights.size());
  const float share = 1 / static_cast<float>(problem.samples());
  for (std::int64_t sample = 0; sample < problem.samples(); ++sample) {
    problem.add_gradient(weights, sample, share, gradient);
  }
  double squares = 0;
  for (const float g : gradient) squares += static_cast<double>(g) * g;
  return squares;
}

}  // namespace bench::theory
