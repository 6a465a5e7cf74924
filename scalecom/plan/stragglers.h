#pragma once

namespace scalecom::plan {

/// Workers' computing times differ from step to step: each is drawn from a log-normal distribution
/// of mean 1 and this standard deviation, and a step waits for the slowest of them. What the
/// slowest of `workers` takes in the mean: 1 for a deviation of 0 or one worker.
double slowest_of(int workers, double deviation);

}  // namespace scalecom::plan
