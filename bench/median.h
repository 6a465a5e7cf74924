#pragma once

#include <vector>

namespace bench {

/// The middle one, of one value at least.
double median(std::vector<double> values);

}  // namespace bench
