#include "bench/reduce.h"

#include <algorithm>
#include <memory>
#include <random>

#include "bench/cuda/timed.h"
#include "bench/host/copy.h"
#include "bench/median.h"
#include "bench/step.h"
#include "bench/stopwatch.h"
#include "scalecom/comm/inproc/inproc.h"
#include "scalecom/comm/together.h"
#include "scalecom/core/aligned_array.h"
#include "scalecom/core/array.h"
#include "scalecom/core/error.h"
#include "scalecom/core/text.h"
#include "scalecom/layout/rates.h"
#include "scalecom/methods/method.h"

namespace bench {
namespace {

namespace comm = scalecom::comm;
namespace core = scalecom::core;
namespace layout = scalecom::layout;
namespace methods = scalecom::methods;

/// In which ranks agree, make room, and connections get up to speed.
constexpr int kWarmUps = 2;
constexpr std::int64_t kSide = 1000;

void check(const ReducePlan& plan) {
  if (plan.elements < 1) {
    throw core::UsageError(
        core::concat("[bench] ", plan.elements, " elements; there are 1 or more"));
  }
  if (plan.repeats < 1 || plan.repeats > kMostRepeats) {
    throw core::UsageError(
        core::concat("[bench] ", plan.repeats, " repeats; there are 1 to ", kMostRepeats));
  }
}

/// A rank's gradient, the same in every step.
class Gradient {
 public:
  Gradient(std::int64_t elements, int rank, const core::Stream& stream)
      : stream_(stream), source_(stream.device(), elements), data_(stream.device(), elements) {
    std::minstd_rand random(static_cast<unsigned>(rank) + 1);
    // Of very different sizes, as gradients are.
    core::AlignedArray<float> values(elements);
    for (float& value : values) {
      const auto draw = static_cast<float>(random() % 2001) / 1000.0F - 1;
      value = draw * draw * draw;
    }
    copy(source_.data(), values.data());
    core::cuda::synchronize(stream_);
  }

  core::Buffer renewed() {
    copy(data_.data(), source_.data());
    return {data_.data(), data_.size(), core::DType::kFloat32, data_.device()};
  }

 private:
  void copy(float* to, const float* from) const {
    const std::int64_t bytes = 4 * source_.size();
    if (source_.device().is_cuda()) return core::cuda::copy(to, from, bytes, stream_);
    host::copy_bytes(to, from, bytes);
  }

  core::Stream stream_;
  core::Array<float> source_;
  core::Array<float> data_;
};

/// A method at work in a world.
class Worker {
 public:
  Worker(const std::string& spec, std::int64_t elements, comm::Communicator& world,
         const core::Stream& stream)
      : method_(methods::make(spec)),
        layout_(layout::make_layout(reduced_tensors(elements), method_->rate_policy())),
        world_(world),
        stream_(stream) {}

  /// Milliseconds of one reduction; on a host, of renewing the gradient too.
  double reduce(Gradient& gradient) {
    if (stream_.device().is_cuda()) {
      const core::Buffer buffer = gradient.renewed();
      return cuda::timed(stream_, [&] { method_->reduce(buffer, layout_, world_, stream_); });
    }
    return milliseconds([&] { method_->reduce(gradient.renewed(), layout_, world_, stream_); });
  }
  comm::Traffic formula() const {
    return method_->cost(layout_, world_.size(), world_.rank(), method_->steps() - 1).total();
  }

 private:
  std::unique_ptr<methods::Method> method_;
  layout::Layout layout_;
  comm::Communicator& world_;
  core::Stream stream_;
};

// When nothing is under way any more: what follows a message is not ahead of it.
InterfaceCounters counters_now(const ReducePlan& plan, comm::Communicator& world) {
  if (plan.interface.empty()) return {};
  world.barrier();
  return read_counters(plan.interface);
}

/// What a step takes that waits for nobody, at every rank at the same time: the median of means
/// over a fifth of the steps. Ranks that share cores take turns on them, for longer than a short
/// step takes, and the middle step would know nothing of the others.
double undisturbed(comm::Communicator& world, const std::vector<double>& times) {
  constexpr int kParts = 5;
  const int steps = static_cast<int>(times.size());
  return comm::mean_over_ranks(world, median_of_runs(times, (steps + kParts - 1) / kParts));
}

/// What a host takes to renew the gradient, which is in all times of its steps: a rank cannot
/// reduce before the others have theirs.
double renewal(Gradient& gradient, int repeats, comm::Communicator& world,
               const core::Stream& stream) {
  // A first renewal is given its memory by the system, and the larger of two is not to count.
  constexpr int kFewest = 5;
  if (stream.device().is_cuda()) return 0;
  std::vector<double> times;
  world.barrier();
  for (int i = 0; i < kWarmUps; ++i) gradient.renewed();
  for (int i = 0; i < std::max(repeats, kFewest); ++i) {
    times.push_back(milliseconds([&] { gradient.renewed(); }));
  }
  return undisturbed(world, times);
}

}  // namespace

std::vector<layout::Tensor> reduced_tensors(std::int64_t elements) {
  std::vector<layout::Tensor> tensors;
  for (std::int64_t rest = elements; rest > 0;) {
    const std::string name = core::concat("w", tensors.size());
    const bool whole = rest >= kSide * kSide;
    tensors.push_back(
        {name, whole ? std::vector{kSide, kSide} : std::vector<std::int64_t>{1, rest}});
    rest -= tensors.back().elements();
  }
  return tensors;
}

std::vector<ReduceFigures> measure_reduce(const ReducePlan& plan, comm::Communicator& world,
                                          const core::Stream& stream,
                                          const std::function<void(int done, int all)>& progress) {
  check(plan);
  Gradient gradient(plan.elements, world.rank(), stream);
  const int steps = kWarmUps + plan.repeats;
  const int all = 2 * steps * static_cast<int>(plan.methods.size());
  int done = 0;
  const double renewal_ms = renewal(gradient, plan.repeats, world, stream);
  std::vector<ReduceFigures> rows;
  for (const std::string& spec : plan.methods) {
    ReduceFigures figures;
    figures.method = spec;
    const auto time = [&](comm::Communicator& ranks) {
      Worker worker(spec, plan.elements, ranks, stream);
      std::vector<double> times;
      InterfaceCounters start;
      figures.formula = {};
      world.barrier();
      comm::Traffic before;
      for (int step = 0; step < steps; ++step) {
        if (step == kWarmUps) {
          before = ranks.counters().total();
          start = counters_now(plan, world);
        }
        const double ms = worker.reduce(gradient);
        progress(++done, all);
        if (step < kWarmUps) continue;
        times.push_back(ms);
        figures.formula += worker.formula();
      }
      figures.moved = ranks.counters().total() - before;
      figures.wire = counters_now(plan, world) - start;
      return times;
    };
    const auto less_renewal = [&](double ms) { return std::max(0.0, ms - renewal_ms); };
    figures.alone_ms = less_renewal(undisturbed(world, time(*comm::inproc::make_world(1).front())));
    // Ranks lead in turn, and what one gains by being ahead in a step it waits for in another.
    figures.reduce_ms =
        less_renewal(comm::mean_over_ranks(world, median_of_runs(time(world), world.size())));
    rows.push_back(std::move(figures));
  }
  return rows;
}

}  // namespace bench
