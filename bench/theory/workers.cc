#include "bench/theory/workers.h"

#include <cmath>
#include <numbers>

#include "bench/theory/random.h"
#include "scalecom/comm/inproc/inproc.h"
#include "scalecom/core/text.h"
#include "scalecom/methods/method.h"

namespace bench::theory {
namespace {

namespace comm = scalecom::comm;
namespace core = scalecom::core;
namespace layout = scalecom::layout;
namespace methods = scalecom::methods;

double square(double x) {
  return x * x;
}

double entry(Distribution distribution, Random& random) {
  constexpr double kShareOfSparse = 0.02;
  switch (distribution) {
    case Distribution::kNormal:
      return random.normal();
    case Distribution::kUniform:
      return std::sqrt(3.0) * (2 * random.uniform() - 1);
    case Distribution::kLaplace: {
      const double u = random.uniform() - 0.5;
      return (u < 0 ? 1 : -1) * std::log(1 - 2 * std::abs(u)) / std::numbers::sqrt2;
    }
    case Distribution::kStudent3: {
      const double squares =
          square(random.normal()) + square(random.normal()) + square(random.normal());
      return random.normal() / std::sqrt(squares);
    }
    case Distribution::kCauchy:
      return random.normal() / random.normal();
    case Distribution::kSparse: {
      const double value = random.normal();
      return random.uniform() < kShareOfSparse ? value / std::sqrt(kShareOfSparse) : 0;
    }
  }
  return 0;
}

/// What a rank makes of its vector when `leader` names the entries: the mean.
std::vector<float> reduce(const std::vector<float>& vector, const layout::Layout& layout,
                          methods::Method& method, comm::Communicator& world, int leader) {
  std::vector<float> mean = vector;
  method.restore(leader, {});  // which forgets the memory: all there is to send is the vector
  method.reduce(core::Buffer::of(mean.data(), layout.elements()), layout, world);
  return mean;
}

/// Those entries of a vector that were sent.
double left_of(const std::vector<float>& vector, const std::vector<float>& sent) {
  double left = 0;
  for (std::size_t i = 0; i < vector.size(); ++i) {
    if (sent[i] == 0) left += square(vector[i]);
  }
  return left;
}

std::vector<float> mean_of(const Vectors& vectors) {
  std::vector<float> mean(vectors.front().size());
  for (std::size_t i = 0; i < mean.size(); ++i) {
    double sum = 0;
    for (const auto& vector : vectors) sum += vector[i];
    mean[i] = static_cast<float>(sum / static_cast<double>(vectors.size()));
  }
  return mean;
}

double squares_of(const Vectors& vectors) {
  double squares = 0;
  for (const auto& vector : vectors) {
    for (const float x : vector) squares += square(x);
  }
  return squares;
}

}  // namespace

std::string to_string(Distribution distribution) {
  switch (distribution) {
    case Distribution::kNormal:
      return "normal";
    case Distribution::kUniform:
      return "uniform";
    case Distribution::kLaplace:
      return "laplace";
    case Distribution::kStudent3:
      return "student3";
    case Distribution::kCauchy:
      return "cauchy";
    case Distribution::kSparse:
      return "sparse";
  }
  return "?";
}

Vectors draw(const Draw& draw) {
  const auto elements = static_cast<std::size_t>(draw.elements);
  Random shared(core::combine(draw.seed, 0));
  std::vector<double> common(elements);
  for (double& x : common) x = std::sqrt(draw.correlation) * entry(draw.distribution, shared);
  Vectors vectors;
  for (int worker = 0; worker < draw.workers; ++worker) {
    Random own(core::combine(draw.seed, static_cast<std::uint64_t>(worker) + 1));
    std::vector<float> vector(elements);
    for (std::size_t i = 0; i < elements; ++i) {
      const double apart = std::sqrt(1 - draw.correlation) * entry(draw.distribution, own);
      vector[i] = static_cast<float>(common[i] + apart);
    }
    vectors.push_back(std::move(vector));
  }
  return vectors;
}

double correlation_of(const Vectors& vectors) {
  const auto workers = static_cast<double>(vectors.size());
  if (vectors.size() < 2) return 0;
  const double squares = squares_of(vectors);
  const double of_sum = workers * workers * squares_of({mean_of(vectors)});
  return (of_sum - squares) / ((workers - 1) * squares);
}

std::vector<Step> steps_by_leader(const Vectors& vectors, double rate, const std::string& select) {
  const auto workers = static_cast<int>(vectors.size());
  const layout::Layout layout({{"x", 0, static_cast<std::int64_t>(vectors.front().size()), rate}});
  const std::string spec = core::concat("scalecom,beta=1,rate=", rate, ",select=", select);
  Vectors sent(vectors.size());  // by leader
  comm::inproc::run(workers, [&](comm::Communicator& world) {
    const auto method = methods::make(spec);
    const auto& own = vectors[static_cast<std::size_t>(world.rank())];
    for (int leader = 0; leader < workers; ++leader) {
      auto mean = reduce(own, layout, *method, world, leader);
      if (world.rank() == leader) sent[static_cast<std::size_t>(leader)] = std::move(mean);
    }
  });
  const std::vector<float> y = mean_of(vectors);
  const auto selection = methods::make(spec)->choice(0)->selection;
  const double squares = squares_of(vectors);
  std::vector<Step> steps;
  for (const auto& one : sent) {
    double left = 0;
    for (const auto& vector : vectors) left += left_of(vector, one);
    steps.push_back(
        {methods::measure_contraction(y, one, layout, selection).value(), left / squares});
  }
  return steps;
}

Step mean(const std::vector<Step>& steps) {
  Step mean;
  const auto share = 1 / static_cast<double>(steps.size());
  for (const Step& step : steps) {
    mean.of_mean.hamming += share * step.of_mean.hamming;
    mean.of_mean.measured += share * step.of_mean.measured;
    mean.of_mean.exact += share * step.of_mean.exact;
    mean.of_workers += share * step.of_workers;
  }
  return mean;
}

double lemma2_bound(double of_workers, double correlation, int workers) {
  return workers * of_workers / (1 + correlation * (workers - 1));
}

}  // namespace bench::theory
