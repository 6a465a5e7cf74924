#include "bench/step.h"

#include "bench/cuda/step.h"
#include "bench/host/step.h"
#include "scalecom/core/cuda/runtime.h"
#include "scalecom/core/error.h"
#include "scalecom/core/text.h"
#include "scalecom/core/thread_pool.h"

namespace bench {

StepFigures measure_step(const StepPlan& plan,
                         const std::function<void(int done, int all)>& progress) {
  if (plan.elements < 1 || plan.repeats < 1 || plan.repeats > kMostRepeats || plan.threads < 0 ||
      static_cast<double>(plan.elements) < plan.rate || plan.rate < 2) {
    throw scalecom::core::UsageError(
        scalecom::core::concat("[bench] elements are from 1 on, repeats from 1 to ", kMostRepeats,
                               ", threads from 0 on, and rate from 2 to the number of elements"));
  }
  scalecom::core::cuda::require(plan.device);
  if (plan.threads > 0) scalecom::core::set_pool_threads(plan.threads);
  return plan.device.is_cuda() ? cuda::measure_step(plan, progress)
                               : host::measure_step(plan, progress);
}

}  // namespace bench
