#include "bench/theory/descent.h"

#include <vector>

#include "scalecom/comm/inproc/inproc.h"
#include "scalecom/core/hash.h"
#include "scalecom/core/text.h"
#include "scalecom/methods/method.h"

namespace bench::theory {
namespace {

namespace comm = scalecom::comm;
namespace core = scalecom::core;
namespace layout = scalecom::layout;
namespace methods = scalecom::methods;

/// A worker's mini-batch, as a function of (seed, worker, step).
void gradient_of(const Problem& problem, const Descent& descent, int worker, std::int64_t step,
                 std::span<const float> weights, std::span<float> gradient) {
  std::fill(gradient.begin(), gradient.end(), 0.0F);
  std::uint64_t draw = core::combine(descent.seed, static_cast<std::uint64_t>(worker));
  draw = core::combine(draw, static_cast<std::uint64_t>(step));
  for (std::int64_t i = 0; i < descent.batch; ++i) {
    const std::uint64_t bits = core::combine(draw, static_cast<std::uint64_t>(i));
    const auto sample =
        static_cast<std::int64_t>(bits % static_cast<std::uint64_t>(problem.samples()));
    problem.add_gradient(weights, sample, 1 / static_cast<float>(descent.batch), gradient);
  }
}

std::string spec_of(const Descent& descent) {
  if (descent.method == "dense") return descent.method;
  return core::concat(descent.method, ",rate=", descent.rate);
}

}  // namespace

double mean_squared_gradient(const Problem& problem, const Descent& descent, std::int64_t looks) {
  const layout::Layout layout({{"weights", 0, problem.parameters(), descent.rate}});
  const std::int64_t apart = descent.steps / looks;
  double sum = 0;
  comm::inproc::run(descent.workers, [&](comm::Communicator& world) {
    const auto method = methods::make(spec_of(descent));
    // All have the same weights and move them alike, as the mean is the same to the bit.
    std::vector<float> weights(static_cast<std::size_t>(problem.parameters()));
    std::vector<float> gradient(weights.size());
    problem.start(weights);
    const auto rate = static_cast<float>(descent.learning_rate);
    for (std::int64_t step = 0; step < apart * looks; ++step) {
      if (world.rank() == 0 && step % apart == apart / 2) sum += squared_gradient(problem, weights);
      gradient_of(problem, descent, world.rank(), step, weights, gradient);
      method->reduce(core::Buffer::of(gradient.data(), layout.elements()), layout, world);
      for (std::size_t i = 0; i < weights.size(); ++i) weights[i] -= rate * gradient[i];
    }
  });
  return sum / static_cast<double>(looks);
}

}  // namespace bench::theory
