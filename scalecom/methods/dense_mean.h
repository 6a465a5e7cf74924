#pragma once

#include <cstdint>
#include <functional>
#include <span>

#include "scalecom/comm/communicator.h"
#include "scalecom/core/aligned_array.h"
#include "scalecom/core/buffer.h"

namespace scalecom::methods {

/// The mean of a whole bucket, in fp32, in place. Every rank scales by 1/n before the sum, as
/// PyTorch's reducer does, so that the result has the bits of training without a hook.
class DenseMean {
 public:
  /// `add(gradient, factor)` may add to the gradient in fp32, already scaled by `factor`. Returns
  /// whether all of the mean is finite; where it is not, the whole bucket has become NaN.
  using Add = std::function<void(float* gradient, float factor)>;
  bool operator()(const core::Buffer& grad, comm::Communicator& communicator, const Add& add = {});

 private:
  core::AlignedArray<float> wide_;  // for 16-bit gradients
};

/// Scales the numbers; whether all of them are finite then.
bool all_finite(std::span<float> numbers, float factor);

/// Every element becomes NaN: what a bucket looks like in which some rank met one.
void fill_nan(const core::Buffer& grad);

}  // namespace scalecom::methods
