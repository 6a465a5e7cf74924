#include "train/loop/losses.h"

namespace train::loop {

namespace core = scalecom::core;

Losses::Losses(core::Device device) : values_(device, kMost) {
  if (!device.is_cuda()) return;
  pinned_ = core::cuda::allocate_pinned(kMost * static_cast<std::int64_t>(sizeof(float)));
  for (std::int64_t i = 0; i < kMost; ++i) arrived_.emplace_back(device);
}

void Losses::send(const core::Stream& stream) {
  const std::int64_t at = place(sent_++);
  if (!pinned_) return;
  core::cuda::copy(static_cast<float*>(pinned_.get()) + at, values_.data() + at, sizeof(float),
                   stream);
  arrived_[static_cast<std::size_t>(at)].record(stream);
}

double Losses::receive() {
  const std::int64_t at = place(received_++);
  if (!pinned_) return values_.data()[at];
  arrived_[static_cast<std::size_t>(at)].wait();
  return static_cast<float*>(pinned_.get())[at];
}

}  // namespace train::loop
