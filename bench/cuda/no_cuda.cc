#include "bench/cuda/step.h"
#include "scalecom/core/cuda/runtime.h"
#include "scalecom/core/error.h"

namespace bench::cuda {

StepFigures measure_step(const StepPlan& /*plan*/, const std::function<void(int, int)>& /*done*/) {
  throw scalecom::core::UsageError("[bench] " + scalecom::core::cuda::why_none());
}

}  // namespace bench::cuda
