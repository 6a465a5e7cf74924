#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <memory>
#include <span>

#include "scalecom/core/buffer.h"
#include "scalecom/core/stream.h"

/// Where torch and this library meet on a device.
namespace scalecom::torch {

/// torch's device of a stream.
at::Device device_of(const core::Stream& stream);

/// A flat, contiguous tensor as a gradient. UsageError for a type that gradients do not have here.
core::Buffer buffer_of(const at::Tensor& tensor);

/// Makes a CUDA stream torch's current one for a while; nothing to do on the CPU.
class OnStream {
 public:
  explicit OnStream(const core::Stream& stream);
  ~OnStream();
  OnStream(const OnStream&) = delete;
  OnStream& operator=(const OnStream&) = delete;

 private:
  struct Guard;
  std::unique_ptr<Guard> guard_;
};

/// Copies `from` to `to`, of the same size, in its place on the stream.
void copy(std::span<std::byte> to, std::span<const std::byte> from, const core::Stream& stream);

}  // namespace scalecom::torch
