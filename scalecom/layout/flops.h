#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace scalecom::layout {

/// The largest rate that rates=flops gives to a layer.
constexpr std::int64_t kLargestFlopsRate = 1000;

/// A tensor among which the values of a step are divided.
struct Share {
  std::int64_t elements = 0;
  double flops_per_gradient = 1;  ///< over 0
};

/// The rates of rates=flops: c / flops_per_gradient, rounded, within [1, 1000]; 1 where the tensor
/// is shorter than that. c grows until the values sent together, a value for every chunk and all of
/// a dense tensor, come down to elements / rate, and the nearest so far is taken. Where that misses
/// by over half a percent, because tensors of equal FLOPs change together, some of them are given
/// the next rate and some not.
std::vector<std::int64_t> flops_rates(std::span<const Share> shares, double rate);

}  // namespace scalecom::layout
