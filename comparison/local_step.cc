#include "comparison/local_step.h"

#include <algorithm>
#include <vector>

#include "bench/host/copy.h"
#include "bench/median.h"
#include "bench/process_memory.h"
#include "bench/stopwatch.h"
#include "scalecom/comm/inproc/inproc.h"
#include "scalecom/core/aligned_array.h"
#include "scalecom/core/text.h"
#include "scalecom/layout/rates.h"
#include "scalecom/methods/method.h"

namespace comparison {
namespace {

namespace comm = scalecom::comm;
namespace core = scalecom::core;
namespace layout = scalecom::layout;
namespace methods = scalecom::methods;

constexpr int kWarmUps = 2;

/// The model's tensors `copies` times, each under a name of its own.
std::vector<layout::Tensor> repeated(std::span<const layout::Tensor> model, std::int64_t copies) {
  std::vector<layout::Tensor> all;
  for (std::int64_t copy = 0; copy < copies; ++copy) {
    for (layout::Tensor tensor : model) {
      tensor.name = core::concat(tensor.name, "#", copy);
      all.push_back(std::move(tensor));
    }
  }
  return all;
}

class Rank {
 public:
  Rank(Probe& probe, const std::string& spec, std::int64_t copies)
      : spec_(spec),
        alone_(comm::inproc::make_world(1)),
        layout_(layout::make_layout(repeated(probe.tensors(), copies),
                                    methods::make(spec)->rate_policy())),
        source_(layout_.elements()),
        gradient_(layout_.elements()),
        copied_(layout_.elements()) {
    const auto elements = static_cast<std::size_t>(probe.elements());
    for (std::int64_t copy = 0; copy < copies; ++copy) {
      probe.gradient(1, 0, copy, {source_.data() + copy * probe.elements(), elements});
    }
    refill();
    copy();  // so that its pages are there
  }

  std::int64_t elements() const { return layout_.elements(); }

  /// Makes the method, and says what it and its first steps take.
  std::int64_t begin() {
    bench::trim_and_reset_peak();
    const std::int64_t before = bench::resident_bytes();
    method_ = methods::make(spec_);
    method_->restore(train::runs::warmup_of(method_->spec()), {});
    for (int step = 0; step < kWarmUps; ++step) {
      refill();
      reduce();
    }
    return std::max<std::int64_t>(0, bench::peak_resident_bytes() - before);
  }

  void refill() { bench::host::copy_bytes(gradient_.data(), source_.data(), bytes()); }
  void copy() { bench::host::copy_bytes(copied_.data(), gradient_.data(), bytes()); }
  void reduce() {
    method_->reduce(core::Buffer::of(gradient_.data(), gradient_.size()), layout_, *alone_.front());
  }

 private:
  std::int64_t bytes() const { return 4 * elements(); }

  std::string spec_;
  std::vector<std::unique_ptr<comm::Communicator>> alone_;
  layout::Layout layout_;
  core::AlignedArray<float> source_;
  core::AlignedArray<float> gradient_;
  core::AlignedArray<float> copied_;
  std::unique_ptr<methods::Method> method_;
};

}  // namespace

LocalStep measure_local_step(Probe& probe, const std::string& spec, std::int64_t least,
                             int repeats) {
  const std::int64_t copies =
      std::max<std::int64_t>(1, (least + probe.elements() - 1) / probe.elements());
  Rank rank(probe, spec, copies);
  LocalStep figures;
  figures.elements = rank.elements();
  figures.method_bytes = rank.begin();
  std::vector<double> steps;
  std::vector<double> copy_times;
  for (int repeat = 0; repeat < repeats; ++repeat) {
    rank.refill();
    copy_times.push_back(bench::milliseconds([&] { rank.copy(); }));
    rank.refill();
    steps.push_back(bench::milliseconds([&] { rank.reduce(); }));
  }
  // Nanoseconds of one, from milliseconds of all.
  const double scale = 1e6 / static_cast<double>(rank.elements());
  figures.ns_per_element = bench::median(steps) * scale;
  figures.copy_ns_per_element = bench::median(copy_times) * scale;
  return figures;
}

}  // namespace comparison
