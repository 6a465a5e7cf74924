#include "bench/cuda/step.h"
#include "bench/cuda/timed.h"
#include "scalecom/core/cuda/runtime.h"
#include "scalecom/core/error.h"

namespace bench::cuda {
namespace {

[[noreturn]] void refuse() {
  throw scalecom::core::UsageError("[bench] " + scalecom::core::cuda::why_none());
}

}  // namespace

StepFigures measure_step(const StepPlan& /*plan*/, const std::function<void(int, int)>& /*done*/) {
  refuse();
}

double timed(const scalecom::core::Stream& /*stream*/, const std::function<void()>& /*work*/) {
  refuse();
}

}  // namespace bench::cuda
