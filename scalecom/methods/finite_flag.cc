#include "scalecom/methods/finite_flag.h"

namespace scalecom::methods {

void FiniteFlag::clear(const core::Stream& stream) {
  stream_ = stream;
  if (flag_.size() == 0 || flag_.device() != stream.device()) {
    flag_ = core::Array<Flag>(stream.device(), 1);
  }
  if (stream.device().is_cuda()) {
    core::cuda::set_zero(flag_.data(), sizeof(Flag), stream);
  } else {
    *flag_.data() = 0;
  }
}

bool FiniteFlag::is_clear() const {
  if (!stream_.device().is_cuda()) return *flag_.data() == 0;
  Flag here = 0;
  core::cuda::copy(&here, flag_.data(), sizeof here, stream_);
  core::cuda::synchronize(stream_);
  return here == 0;
}

}  // namespace scalecom::methods
