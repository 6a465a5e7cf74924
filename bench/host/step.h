#pragma once

#include "bench/step.h"

namespace bench::host {

StepFigures measure_step(const StepPlan& plan, const std::function<void(int, int)>& progress);

}  // namespace bench::host
