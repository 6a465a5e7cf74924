#pragma once

#include <cstdint>
#include <vector>

namespace scalecom::methods::dgc {

/// The positions, ascending, of about `length / rate` of the largest magnitudes of an array: those
/// from a threshold on that a sample of it gives. From 0.8 to 1.3 times as many, but for arrays
/// that ten lower thresholds do not serve; `draw` decides where the sample begins.
std::vector<std::uint32_t> select_by_sample(const float* numbers, std::int64_t length, double rate,
                                            std::int64_t keep, std::uint64_t draw);

}  // namespace scalecom::methods::dgc
