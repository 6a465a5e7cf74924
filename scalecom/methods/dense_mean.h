#pragma once

#include <cstdint>

#include "scalecom/comm/communicator.h"
#include "scalecom/core/aligned_array.h"
#include "scalecom/core/buffer.h"

namespace scalecom::methods {

/// The mean of a whole bucket, in fp32, in place. Every rank scales by 1/n before the sum, as
/// PyTorch's reducer does, so that the result has the bits of training without a hook.
class DenseMean {
 public:
  /// Returns whether all of the mean is finite.
  bool operator()(const core::Buffer& grad, comm::Communicator& communicator);

 private:
  core::AlignedArray<float> wide_;  // for 16-bit gradients
};

/// Every element becomes NaN: what a bucket looks like in which some rank met one.
void fill_nan(const core::Buffer& grad);

}  // namespace scalecom::methods
