#include "bench/cuda/step.h"

#include <cuda_runtime_api.h>

#include <memory>
#include <vector>

#include "bench/cuda/plain_pass.h"
#include "bench/cuda/timed.h"
#include "bench/problem.h"
#include "bench/scripted_peers.h"
#include "bench/turns.h"
#include "scalecom/comm/inproc/inproc.h"
#include "scalecom/core/array.h"
#include "scalecom/core/cuda/check.h"
#include "scalecom/core/thread_pool.h"
#include "scalecom/methods/method.h"

namespace bench::cuda {
namespace {

namespace comm = scalecom::comm;
namespace core = scalecom::core;
namespace methods = scalecom::methods;

class StepBench {
 public:
  explicit StepBench(const StepPlan& plan)
      : plan_(plan),
        problem_(plan),
        alone_(comm::inproc::make_world(1)),
        peers_(problem_.offsets()),
        stream_(core::Stream::cuda(plan.device)),
        source_(plan.device, problem_.bytes()),
        gradient_(plan.device, problem_.bytes()) {
    core::cuda::copy(source_.data(), problem_.source().data(), problem_.bytes(), stream_);
    peers_.place_on(stream_);
    core::cuda::synchronize(stream_);
  }

  std::int64_t peak_bytes() {
    const std::int64_t before = core::cuda::memory_info(plan_.device).free;
    const auto leader = methods::make(problem_.method());
    for (int i = 0; i < 3; ++i) step(*leader, *alone_.front());
    core::cuda::synchronize(stream_);
    return before - core::cuda::memory_info(plan_.device).free;
  }

  bool verify() { return verified(*alone_.front(), true) && verified(peers_, false); }

  void time(StepFigures& figures, const std::function<void(int, int)>& progress);

 private:
  void refill() { core::cuda::copy(gradient_.data(), source_.data(), problem_.bytes(), stream_); }
  void step(methods::Method& method, comm::Communicator& communicator) {
    method.reduce({gradient_.data(), plan_.elements, plan_.type, plan_.device}, problem_.layout(),
                  communicator, stream_);
  }
  bool verified(comm::Communicator& communicator, bool leads);

  StepPlan plan_;
  Problem problem_;
  std::vector<std::unique_ptr<comm::Communicator>> alone_;
  ScriptedPeers peers_;
  core::Stream stream_;
  core::Array<std::byte> source_;
  core::Array<std::byte> gradient_;
};

// Two steps against the scalar reference: gradients and memories, bit for bit.
bool StepBench::verified(comm::Communicator& communicator, bool leads) {
  const auto method = methods::make(problem_.method());
  Expected expected(problem_);
  core::AlignedArray<std::byte> result(problem_.bytes());
  for (int number = 0; number < 2; ++number) {
    refill();
    step(*method, communicator);
    core::cuda::copy(result.data(), gradient_.data(), problem_.bytes(), stream_);
    core::cuda::synchronize(stream_);
    expected.step(leads, communicator.size(), number);
    const std::span bytes(result.data(), static_cast<std::size_t>(result.size()));
    if (!same_bytes(bytes, expected.gradient())) return false;
    const std::span<const float> memory = method->memories().front().values;
    if (!same_bytes(std::as_bytes(memory), std::as_bytes(expected.memory()))) return false;
  }
  return true;
}

void StepBench::time(StepFigures& figures, const std::function<void(int, int)>& progress) {
  const auto leader = methods::make(problem_.method());
  const auto follower = methods::make(problem_.method());
  core::Array<std::byte> copied(plan_.device, problem_.bytes());
  core::Array<float> memory(plan_.device, plan_.elements);
  core::Array<float> copied_too(plan_.device, plan_.elements);
  const auto beta = static_cast<float>(plan_.beta);
  const auto copy_gradient = [&] {
    core::cuda::copy(copied.data(), gradient_.data(), problem_.bytes(), stream_);
  };
  const Passes passes{
      .leader = [&] { step(*leader, *alone_.front()); },
      .follower = [&] { step(*follower, peers_); },
      .plain =
          [&] {
            plain_pass(memory.data(), gradient_.data(), plan_.type, beta, plan_.elements, stream_);
          },
      .copy = copy_gradient,
      .floor =
          [&] {
            copy_gradient();
            core::cuda::copy(copied_too.data(), memory.data(), 4 * plan_.elements, stream_);
          }};
  const auto milliseconds = [&](const std::function<void()>& pass) {
    refill();
    return timed(stream_, pass);
  };
  time_in_turns(passes, Against::kFloor, plan_.repeats, milliseconds, progress, figures);
}

std::string name_of(core::Device device) {
  cudaDeviceProp properties{};
  core::cuda::check(cudaGetDeviceProperties(&properties, device.index), "cudaGetDeviceProperties");
  return properties.name;
}

}  // namespace

StepFigures measure_step(const StepPlan& plan, const std::function<void(int, int)>& progress) {
  const core::cuda::DeviceScope scope(plan.device);
  StepFigures figures;
  figures.engine = name_of(plan.device);
  figures.threads = core::pool_threads();
  StepBench bench(plan);
  figures.peak_bytes = bench.peak_bytes();
  figures.verified = bench.verify();
  if (figures.verified) bench.time(figures, progress);
  return figures;
}

}  // namespace bench::cuda
