#include "bench/host/step.h"

#include <memory>
#include <vector>

#include "bench/host/blocks.h"
#include "bench/host/copy.h"
#include "bench/problem.h"
#include "bench/process_memory.h"
#include "bench/scripted_peers.h"
#include "bench/stopwatch.h"
#include "bench/turns.h"
#include "scalecom/comm/inproc/inproc.h"
#include "scalecom/core/thread_pool.h"
#include "scalecom/methods/method.h"

namespace bench::host {
namespace {

namespace comm = scalecom::comm;
namespace core = scalecom::core;
namespace kernels = scalecom::kernels;
namespace methods = scalecom::methods;

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

// One rank with a method of its own, brought one gradient a step.
class Rank {
 public:
  Rank(const Problem& problem, comm::Communicator& communicator)
      : problem_(problem), communicator_(communicator), method_(methods::make(problem.method())) {}

  void step(std::byte* gradient) {
    method_->reduce({gradient, problem_.plan().elements, problem_.plan().type}, problem_.layout(),
                    communicator_);
  }

  std::span<const float> memory() const { return method_->memories().front().values; }

 private:
  const Problem& problem_;
  comm::Communicator& communicator_;
  std::unique_ptr<methods::Method> method_;
};

class StepBench {
 public:
  explicit StepBench(const StepPlan& plan)
      : plan_(plan),
        problem_(plan),
        alone_(comm::inproc::make_world(1)),
        peers_(problem_.offsets()),
        gradient_(problem_.bytes()) {
    refill();
  }

  /// What a leader's method adds to a process that holds the gradient.
  std::int64_t peak_bytes() {
    const std::int64_t before = resident_bytes();
    reset_peak();
    Rank leader(problem_, *alone_.front());
    for (int i = 0; i < 3; ++i) {
      refill();
      leader.step(gradient_.data());
    }
    return peak_resident_bytes() - before;
  }

  bool verify() { return verified(*alone_.front(), true) && verified(peers_, false); }

  void time(StepFigures& figures, const std::function<void(int, int)>& progress);

 private:
  void refill() { copy_bytes(gradient_.data(), problem_.source().data(), problem_.bytes()); }
  bool verified(comm::Communicator& communicator, bool leads);

  StepPlan plan_;
  Problem problem_;
  std::vector<std::unique_ptr<comm::Communicator>> alone_;
  ScriptedPeers peers_;
  core::AlignedArray<std::byte> gradient_;
};

// Two steps against the scalar reference: gradients and memories, bit for bit.
bool StepBench::verified(comm::Communicator& communicator, bool leads) {
  Rank rank(problem_, communicator);
  Expected expected(problem_);
  for (int step = 0; step < 2; ++step) {
    refill();
    rank.step(gradient_.data());
    expected.step(leads, communicator.size(), step);
    const std::span result(gradient_.data(), static_cast<std::size_t>(gradient_.size()));
    if (!same_bytes(result, expected.gradient())) return false;
    if (!same_bytes(std::as_bytes(rank.memory()), std::as_bytes(expected.memory()))) return false;
  }
  return true;
}

void StepBench::time(StepFigures& figures, const std::function<void(int, int)>& progress) {
  Rank leader(problem_, *alone_.front());
  Rank follower(problem_, peers_);
  core::AlignedArray<std::byte> copied(problem_.bytes());
  core::AlignedArray<float> copied_too(plan_.elements);
  core::AlignedArray<float> wide(plan_.type == core::DType::kFloat32 ? 0 : plan_.elements);
  const auto beta = static_cast<float>(plan_.beta);
  leader.step(gradient_.data());  // from now on it has a memory
  // The plain pass and the copy run over the method's own memory.
  auto* const memory = const_cast<float*>(leader.memory().data());
  const auto* const plain =
      wide.size() > 0 ? wide.data() : reinterpret_cast<float*>(gradient_.data());
  const auto copy_gradient = [&] { copy_bytes(copied.data(), gradient_.data(), problem_.bytes()); };
  const Passes passes{.leader = [&] { leader.step(gradient_.data()); },
                      .follower = [&] { follower.step(gradient_.data()); },
                      .plain = [&] { plain_pass(memory, plain, beta, plan_.elements); },
                      .copy = copy_gradient,
                      .floor =
                          [&] {
                            copy_gradient();
                            copy_bytes(copied_too.data(), memory, 4 * plan_.elements);
                          }};
  const auto from_fresh_gradient = [&](const std::function<void()>& pass) {
    refill();
    return milliseconds(pass);
  };
  time_in_turns(passes, Against::kPlain, plan_.repeats, from_fresh_gradient, progress, figures);
}

}  // namespace

StepFigures measure_step(const StepPlan& plan, const std::function<void(int, int)>& progress) {
  StepFigures figures;
  figures.engine = kernels::table().isa;
  figures.threads = core::pool_threads();
  StepBench bench(plan);
  figures.peak_bytes = bench.peak_bytes();
  figures.verified = bench.verify();
  if (figures.verified) bench.time(figures, progress);
  return figures;
}

}  // namespace bench::host
