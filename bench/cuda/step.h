#pragma once

#include "bench/step.h"

namespace bench::cuda {

StepFigures measure_step(const StepPlan& plan, const std::function<void(int, int)>& progress);

}  // namespace bench::cuda
