#pragma once

#include "scalecom/core/array.h"
#include "scalecom/core/stream.h"
#include "scalecom/kernels/elementwise.h"

namespace scalecom::methods {

/// How a loss scaler's scale changes from step to step, known where the scale lies.
class LossScale {
 public:
  using Flag = kernels::elementwise::Flag;

  /// Looks at the scale, a number on the stream's device, from this point of the stream on.
  void look(const float* scale, const core::Stream& stream);

  /// What became of it since the look before: what all gradients are multiplied with from now on,
  /// and 1 where the scaler skipped the last step, which is when it lowers the scale.
  const float* factor() const { return numbers_.data() + 1; }
  const Flag* skipped() const { return skipped_.data(); }

  /// The same for the host, which waits for a GPU.
  struct Change {
    float factor = 1;
    bool skipped = false;
  };
  Change read() const;

 private:
  core::Stream stream_;
  core::Array<float> numbers_;  // the last scale, the factor
  core::Array<Flag> skipped_;
};

}  // namespace scalecom::methods
