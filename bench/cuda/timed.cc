#include "bench/cuda/timed.h"

#include <cuda_runtime_api.h>

#include "scalecom/core/cuda/check.h"

namespace bench::cuda {
namespace {

namespace core = scalecom::core;

// A moment on the device's own clock.
class Moment {
 public:
  Moment() { core::cuda::check(cudaEventCreate(&event_), "cudaEventCreate"); }
  ~Moment() { static_cast<void>(cudaEventDestroy(event_)); }
  Moment(const Moment&) = delete;
  Moment& operator=(const Moment&) = delete;

  void record(const core::Stream& stream) {
    core::cuda::check(cudaEventRecord(event_, static_cast<cudaStream_t>(stream.native())),
                      "cudaEventRecord");
  }
  /// Waits for both.
  static double milliseconds(const Moment& begin, const Moment& end) {
    core::cuda::check(cudaEventSynchronize(end.event_), "cudaEventSynchronize");
    float elapsed = 0;
    core::cuda::check(cudaEventElapsedTime(&elapsed, begin.event_, end.event_),
                      "cudaEventElapsedTime");
    return elapsed;
  }

 private:
  cudaEvent_t event_ = nullptr;
};

}  // namespace

double timed(const core::Stream& stream, const std::function<void()>& work) {
  const core::cuda::DeviceScope scope(stream.device());
  Moment begin;
  Moment end;
  begin.record(stream);
  work();
  end.record(stream);
  return Moment::milliseconds(begin, end);
}

}  // namespace bench::cuda
