#include "bench/step.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <memory>
#include <vector>

#include "bench/process_memory.h"
#include "bench/scripted_peers.h"
#include "scalecom/comm/inproc/inproc.h"
#include "scalecom/core/aligned_array.h"
#include "scalecom/core/error.h"
#include "scalecom/core/hash.h"
#include "scalecom/core/text.h"
#include "scalecom/core/thread_pool.h"
#include "scalecom/kernels/kernels.h"
#include "scalecom/kernels/reference/reference.h"
#include "scalecom/kernels/select.h"
#include "scalecom/methods/method.h"
#include "scalecom/wire/offsets.h"

namespace bench {
namespace {

namespace comm = scalecom::comm;
namespace core = scalecom::core;
namespace kernels = scalecom::kernels;
namespace layout = scalecom::layout;
namespace methods = scalecom::methods;

using Floats = core::AlignedArray<float>;

constexpr int kWorld = 4096;            // of the follower, which so follows for 4,095 steps
constexpr std::int64_t kBlock = 65536;  // elements of a thread's turn in the plain passes

// A gradient like any other: no zeros, no order, both signs.
void fill(Floats& gradient, std::uint64_t seed) {
  for (std::int64_t i = 0; i < gradient.size(); ++i) {
    const std::uint64_t bits = core::mix(seed + static_cast<std::uint64_t>(i));
    gradient[i] = (static_cast<float>(bits >> 40) - 8388607.5F) * 0x1p-26F;
  }
}

template <typename Pass>
void over_blocks(std::int64_t elements, const Pass& pass) {
  core::parallel_for((elements + kBlock - 1) / kBlock, [&](std::int64_t block) {
    pass(block * kBlock, std::min(elements, (block + 1) * kBlock));
  });
}

// With the widest vectors there are, as the kernels: the comparison is to be a fair one.
#if defined(__x86_64__)
__attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#endif
void plain_block(float* memory, const float* gradient, float beta, std::int64_t elements) {
  for (std::int64_t i = 0; i < elements; ++i) memory[i] += beta * gradient[i];
}

void plain_pass(float* memory, const float* gradient, float beta, std::int64_t elements) {
  over_blocks(elements, [=](std::int64_t begin, std::int64_t end) {
    plain_block(memory + begin, gradient + begin, beta, end - begin);
  });
}

void copy(float* to, const float* from, std::int64_t elements) {
  over_blocks(elements, [=](std::int64_t begin, std::int64_t end) {
    std::memcpy(to + begin, from + begin, static_cast<std::size_t>(end - begin) * sizeof(float));
  });
}

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

template <typename Work>
double milliseconds(const Work& work) {
  const auto begin = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin)
      .count();
}

// One rank with a method of its own, brought one gradient a step.
class Rank {
 public:
  Rank(const StepPlan& plan, const layout::Layout& layout, comm::Communicator& communicator)
      : layout_(layout),
        communicator_(communicator),
        method_(methods::make(core::concat("scalecom,rate=", core::shortest(plan.rate),
                                           ",beta=", core::shortest(plan.beta)))) {}

  void step(Floats& gradient) {
    method_->reduce(core::Buffer::of(gradient.data(), gradient.size()), layout_, communicator_);
  }

  /// The method's own memory: the plain pass and the copy run over the very same array.
  float* memory() const { return const_cast<float*>(method_->memories().front().values.data()); }

 private:
  const layout::Layout& layout_;
  comm::Communicator& communicator_;
  std::unique_ptr<methods::Method> method_;
};

class StepBench {
 public:
  explicit StepBench(const StepPlan& plan)
      : plan_(plan),
        layout_({{"gradient", 0, plan.elements, plan.rate}}),
        cut_(layout::cut(layout_.slices().front(), {})),
        positions_(static_cast<std::size_t>(cut_.kept())),
        alone_(comm::inproc::make_world(1)),
        source_(plan.elements),
        gradient_(plan.elements) {
    fill(source_, 1);
    kernels::select_random(7, cut_, 0, cut_.chunks(), positions_.data());
    std::vector<std::byte> offsets(
        static_cast<std::size_t>(scalecom::wire::packed_bytes(cut_, 0, cut_.chunks())));
    scalecom::wire::pack(cut_, 0, cut_.chunks(), positions_.data(), offsets);
    peers_ = std::make_unique<ScriptedPeers>(kWorld, std::move(offsets));
    refill();
  }

  /// What a leader's method adds to a process that holds the gradient.
  std::int64_t peak_bytes() {
    const std::int64_t before = resident_bytes();
    reset_peak();
    Rank leader(plan_, layout_, *alone_.front());
    for (int i = 0; i < 3; ++i) {
      refill();
      leader.step(gradient_);
    }
    return peak_resident_bytes() - before;
  }

  bool verify() { return verified(*alone_.front(), true) && verified(*peers_, false); }

  void time(StepFigures& figures, const std::function<void(int, int)>& progress);

 private:
  void refill() { copy(gradient_.data(), source_.data(), plan_.elements); }
  bool verified(comm::Communicator& communicator, bool leads);

  StepPlan plan_;
  layout::Layout layout_;
  layout::Cut cut_;
  std::vector<std::uint32_t> positions_;  // that the scripted leader names
  std::vector<std::unique_ptr<comm::Communicator>> alone_;
  std::unique_ptr<ScriptedPeers> peers_;
  Floats source_;
  Floats gradient_;
};

// Two steps against the scalar reference: gradients and memories, bit for bit.
bool StepBench::verified(comm::Communicator& communicator, bool leads) {
  const kernels::Table& reference = kernels::reference::table();
  const kernels::Filter filter{static_cast<float>(plan_.beta), 1.0F};
  const std::int64_t count = cut_.kept();
  Rank rank(plan_, layout_, communicator);
  Floats expected_gradient(plan_.elements);
  Floats expected_memory(plan_.elements);
  std::vector<std::uint32_t> positions = positions_;
  std::vector<float> values(positions.size());
  std::vector<float> before(positions.size());
  const kernels::Taken taken{positions.data(), values.data(), before.data()};
  const kernels::Tensor tensor{expected_gradient.data(), core::DType::kFloat32,
                               expected_memory.data(), plan_.elements};
  const auto factor = 1.0F / static_cast<float>(communicator.size());
  const auto bytes = static_cast<std::size_t>(plan_.elements) * sizeof(float);
  for (int step = 0; step < 2; ++step) {
    refill();
    copy(expected_gradient.data(), source_.data(), plan_.elements);
    if (leads) {
      reference.lead(tensor, filter, core::DType::kFloat32, cut_.chunk, 0, cut_.chunks(), taken);
    } else {
      reference.accumulate(tensor, filter, 0, plan_.elements);
      reference.take(tensor, filter, core::DType::kFloat32, count, taken);
    }
    for (float& value : values) value *= factor;
    reference.zero_and_put(tensor, 0, plan_.elements, count, positions.data(), values.data());
    rank.step(gradient_);
    if (std::memcmp(gradient_.data(), expected_gradient.data(), bytes) != 0) return false;
    if (std::memcmp(rank.memory(), expected_memory.data(), bytes) != 0) return false;
  }
  return true;
}

void StepBench::time(StepFigures& figures, const std::function<void(int, int)>& progress) {
  Rank leader(plan_, layout_, *alone_.front());
  Rank follower(plan_, layout_, *peers_);
  Floats copied(plan_.elements);
  Floats copied_too(plan_.elements);
  const auto beta = static_cast<float>(plan_.beta);
  leader.step(gradient_);  // from now on it has a memory
  const auto copy_gradient = [&] { copy(copied.data(), gradient_.data(), plan_.elements); };
  const std::vector<std::function<void()>> passes = {
      [&] { leader.step(gradient_); }, [&] { follower.step(gradient_); },
      [&] { plain_pass(leader.memory(), gradient_.data(), beta, plan_.elements); }, copy_gradient,
      [&] {
        copy_gradient();
        copy(copied_too.data(), leader.memory(), plan_.elements);
      }};
  std::vector<std::vector<double>> times(passes.size());
  constexpr int kWarmUp = 2;
  for (int round = -kWarmUp; round < plan_.repeats; ++round) {
    for (std::size_t i = 0; i < passes.size(); ++i) {
      // Each comes after each of the others in turn, and finds the gradient freshly written, as a
      // backward pass leaves it.
      const std::size_t pass = (i + static_cast<std::size_t>(round + kWarmUp)) % passes.size();
      refill();
      const double taken = milliseconds(passes[pass]);
      if (round >= 0) times[pass].push_back(taken);
    }
    progress(round + kWarmUp + 1, plan_.repeats + kWarmUp);
  }
  const auto ratio_to_plain = [&](std::vector<double> pass) {
    for (std::size_t i = 0; i < pass.size(); ++i) pass[i] /= times[2][i];
    return median(pass);
  };
  figures.leader_ms = median(times[0]);
  figures.follower_ms = median(times[1]);
  figures.plain_ms = median(times[2]);
  figures.copy_ms = median(times[3]);
  figures.floor_ms = median(times[4]);
  figures.leader_ratio = ratio_to_plain(times[0]);
  figures.follower_ratio = ratio_to_plain(times[1]);
}

}  // namespace

StepFigures measure_step(const StepPlan& plan,
                         const std::function<void(int done, int all)>& progress) {
  if (plan.elements < 1 || plan.repeats < 1 || plan.threads < 0 ||
      static_cast<double>(plan.elements) < plan.rate || plan.rate < 2) {
    throw core::UsageError(
        "[bench] elements and repeats are from 1 on, threads from 0 on, and rate from 2 to the "
        "number of elements");
  }
  if (plan.threads > 0) core::set_pool_threads(plan.threads);
  StepFigures figures;
  figures.isa = kernels::table().isa;
  figures.threads = core::pool_threads();
  StepBench bench(plan);
  figures.peak_bytes = bench.peak_bytes();
  figures.verified = bench.verify();
  if (figures.verified) bench.time(figures, progress);
  return figures;
}

}  // namespace bench
