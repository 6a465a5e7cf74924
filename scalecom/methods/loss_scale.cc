#include "scalecom/methods/loss_scale.h"

namespace scalecom::methods {

void LossScale::look(const float* scale, const core::Stream& stream) {
  stream_ = stream;
  if (numbers_.size() == 0 || numbers_.device() != stream.device()) {
    numbers_ = core::Array<float>(stream.device(), 2);
    skipped_ = core::Array<Flag>(stream.device(), 1);
  }
  kernels::elementwise::follow(scale, numbers_.data(), numbers_.data() + 1, skipped_.data(),
                               stream);
}

LossScale::Change LossScale::read() const {
  if (!stream_.device().is_cuda()) return {*factor(), *skipped() != 0};
  Change change;
  Flag flag = 0;
  core::cuda::copy(&change.factor, factor(), sizeof change.factor, stream_);
  core::cuda::copy(&flag, skipped(), sizeof flag, stream_);
  core::cuda::synchronize(stream_);
  change.skipped = flag != 0;
  return change;
}

}  // namespace scalecom::methods
