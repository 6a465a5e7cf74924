#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "scalecom/core/array.h"
#include "scalecom/core/buffer.h"
#include "scalecom/kernels/cuda/gathered.h"
#include "scalecom/methods/sparse/shape.h"

namespace scalecom::methods::sparse::cuda {

/// One rank's message on the device: its parts there, in the order of their items.
struct Message {
  const kernels::cuda::GatheredPart* d_parts = nullptr;
  std::int64_t parts = 0;
  std::int64_t items = 0;
  const std::byte* d_bytes = nullptr;
};

/// Makes a gradient on a GPU the mean of what all ranks have sent. The host looks at nothing.
class GatheredMean {
 public:
  /// Of gradients of so many elements.
  GatheredMean(core::Device device, std::int64_t elements);

  /// Makes room for gradients of this type.
  void reserve(core::DType dtype);

  /// The gradient becomes the sum over messages, in their order, of values times `factor`, and the
  /// dense slices of `rest`, which is [dense slices | flag] summed over ranks. All of it becomes
  /// NaN where some of that is not finite, or the flag is not 0.
  void operator()(const core::Buffer& grad, const Shape& shape, std::span<const Message> messages,
                  std::span<const float> rest, float factor, const core::Stream& stream);

  /// Of the last call, on the device: 1 where the mean is finite, and 1 where it is not.
  std::int32_t* d_sent() { return sent_.data(); }
  std::int32_t* d_refused() { return refused_.data(); }
  /// The same for the host. Waits.
  bool was_sent(const core::Stream& stream) const;
  void forget_sent(const core::Stream& stream);

 private:
  std::int64_t elements_;
  core::Array<kernels::elementwise::Flag> flag_;
  core::Array<std::int32_t> sent_;
  core::Array<std::int32_t> refused_;
  core::Array<float> wide_;  // for 16-bit gradients
};

}  // namespace scalecom::methods::sparse::cuda
