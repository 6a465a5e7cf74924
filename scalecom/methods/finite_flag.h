#pragma once

#include "scalecom/core/array.h"
#include "scalecom/core/stream.h"
#include "scalecom/kernels/elementwise.h"

namespace scalecom::methods {

/// Whether a result is finite, known where the result lies.
class FiniteFlag {
 public:
  using Flag = kernels::elementwise::Flag;

  /// All is finite as far as is known, from this point of the stream on.
  void clear(const core::Stream& stream);
  Flag* data() { return flag_.data(); }
  /// Waits for a GPU.
  bool is_clear() const;

 private:
  core::Stream stream_;
  core::Array<Flag> flag_;
};

}  // namespace scalecom::methods
