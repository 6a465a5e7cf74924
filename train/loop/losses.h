#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "scalecom/core/array.h"
#include "scalecom/core/cuda/runtime.h"
#include "scalecom/core/stream.h"

namespace train::loop {

/// A learner's losses on their way from where they are computed to the host, at most two at a time,
/// so that a device need not stand still while the host looks at one.
class Losses {
 public:
  explicit Losses(scalecom::core::Device device);

  /// Where the next loss is to be written, on the device.
  float* next() { return values_.data() + place(sent_); }
  /// It is written, in order on `stream`.
  void send(const scalecom::core::Stream& stream);

  /// Those that were sent and not received.
  std::int64_t waiting() const { return sent_ - received_; }
  /// The oldest of them.
  double receive();

 private:
  static constexpr std::int64_t kMost = 2;
  static std::int64_t place(std::int64_t loss) { return loss % kMost; }

  scalecom::core::Array<float> values_;
  std::shared_ptr<void> pinned_;  // the host's copy of a device's
  std::vector<scalecom::core::cuda::Event> arrived_;
  std::int64_t sent_ = 0;
  std::int64_t received_ = 0;
};

}  // namespace train::loop
