#pragma once

#include <vector>

namespace bench {

/// The middle one, of one value at least.
double median(std::vector<double> values);

/// The median over all runs of `length` values in a row of their means; of all values where there
/// are fewer. For values that go up and down with a period.
double median_of_runs(const std::vector<double>& values, int length);

}  // namespace bench
