#include "scalecom/kernels/momentum.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

namespace scalecom::kernels {
namespace {

// Gradients on their way through fp32: they stay in the first-level cache.
constexpr std::int64_t kStage = 2048;

const std::byte* at(const void* grad, core::DType dtype, std::int64_t index) {
  return static_cast<const std::byte*>(grad) + index * core::size_of(dtype);
}

// The velocity after a gradient, and what it moves by.
struct Motion {
  Motion(Momentum momentum, float velocity, float gradient)
      : velocity(momentum.nesterov ? momentum.factor * (velocity + gradient)
                                   : momentum.factor * velocity + gradient),
        step(momentum.nesterov ? this->velocity + gradient : this->velocity) {}

  float velocity;
  float step;
};

bool is_finite(float number) {
  return std::abs(number) <= std::numeric_limits<float>::max();
}

// Without a branch an entry, so that the compiler makes vectors of it.
template <bool kNesterov>
bool accumulate(const float* gradient, float* memory, float* velocity, float factor,
                std::int64_t count) {
  bool finite = true;
  for (std::int64_t i = 0; i < count; ++i) {
    const Motion motion({factor, kNesterov}, velocity[i], gradient[i]);
    const float after = memory[i] + motion.step;
    const bool fine = is_finite(after) && is_finite(motion.velocity);
    velocity[i] = fine ? motion.velocity : velocity[i];
    memory[i] = fine ? after : memory[i];
    finite &= fine;
  }
  return finite;
}

}  // namespace

bool accumulate_momentum(const Tensor& tensor, float* velocity, Momentum momentum, float scale,
                         std::int64_t begin, std::int64_t end) {
  std::array<float, kStage> gradient;
  bool finite = true;
  for (std::int64_t i = begin; i < end; i += kStage) {
    const std::int64_t count = std::min(kStage, end - i);
    table().load(at(tensor.grad, tensor.dtype, i), tensor.dtype, count, scale, gradient.data());
    const auto pass = momentum.nesterov ? accumulate<true> : accumulate<false>;
    finite &= pass(gradient.data(), tensor.memory + i, velocity + i, momentum.factor, count);
  }
  return finite;
}

bool apply_momentum(float* numbers, float* velocity, std::int64_t count, Momentum momentum,
                    float factor) {
  bool finite = true;
  for (std::int64_t i = 0; i < count; ++i) {
    const Motion motion(momentum, velocity[i], numbers[i]);
    const bool fine = is_finite(motion.velocity) && is_finite(motion.step);
    velocity[i] = fine ? motion.velocity : velocity[i];
    numbers[i] = motion.step * factor;
    finite &= fine;
  }
  return finite;
}

double sum_of_squares(const void* grad, core::DType dtype, std::int64_t begin, std::int64_t end) {
  std::array<float, kStage> gradient;
  double sum = 0;
  for (std::int64_t i = begin; i < end; i += kStage) {
    const std::int64_t count = std::min(kStage, end - i);
    table().load(at(grad, dtype, i), dtype, count, 1.0F, gradient.data());
    for (std::int64_t j = 0; j < count; ++j) {
      const double value = gradient[static_cast<std::size_t>(j)];
      sum += value * value;
    }
  }
  return sum;
}

}  // namespace scalecom::kernels
