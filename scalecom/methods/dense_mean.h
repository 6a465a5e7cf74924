#pragma once

#include <functional>

#include "scalecom/comm/communicator.h"
#include "scalecom/core/array.h"
#include "scalecom/core/buffer.h"
#include "scalecom/methods/finite_flag.h"

namespace scalecom::methods {

/// The mean of a whole bucket, in fp32, in place. Every rank scales by 1/n before the sum, as
/// PyTorch's reducer does, so that the result has the bits of training without a hook. Where some
/// of it is not finite, the whole bucket becomes NaN.
class DenseMean {
 public:
  /// `add(gradient, factor)` may add to the gradient in fp32, already scaled by `factor`, on the
  /// stream.
  using Add = std::function<void(float* gradient, float factor)>;
  void operator()(const core::Buffer& grad, comm::Communicator& communicator,
                  const core::Stream& stream, const Add& add = {});

  /// Room for buckets of so many elements, which is otherwise made by the first.
  void reserve(core::DType dtype, std::int64_t elements, core::Device device);

  /// Whether all of the last mean was finite. Waits for a GPU.
  bool is_finite() const { return flag_.is_clear(); }

 private:
  core::Array<float> wide_;  // for 16-bit gradients
  FiniteFlag flag_;
};

}  // namespace scalecom::methods
