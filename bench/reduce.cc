#include "bench/reduce.h"

#include <chrono>
#include <memory>
#include <numeric>
#include <random>

#include "bench/cuda/timed.h"
#include "bench/host/copy.h"
#include "bench/median.h"
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
  if (plan.repeats < 1) {
    throw core::UsageError(core::concat("[bench] ", plan.repeats, " repeats; there are 1 or more"));
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

  /// Milliseconds of one reduction.
  double reduce(Gradient& gradient) {
    const core::Buffer buffer = gradient.renewed();
    const auto reduction = [&] { method_->reduce(buffer, layout_, world_, stream_); };
    if (buffer.device.is_cuda()) return cuda::timed(stream_, reduction);
    const auto begin = std::chrono::steady_clock::now();
    reduction();
    const auto end = std::chrono::steady_clock::now();
    return std::chrono::duration<double, std::milli>(end - begin).count();
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

double mean_over_ranks(comm::Communicator& world, double value) {
  const std::vector<double> all = comm::gather(world, value);
  return std::accumulate(all.begin(), all.end(), 0.0) / static_cast<double>(all.size());
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
      // Ranks lead in turn, and what one gains by being ahead in a step it waits for in another.
      return mean_over_ranks(world, median_of_runs(times, ranks.size()));
    };
    figures.alone_ms = time(*comm::inproc::make_world(1).front());
    figures.reduce_ms = time(world);
    rows.push_back(std::move(figures));
  }
  return rows;
}

}  // namespace bench
