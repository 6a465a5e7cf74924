#pragma once

#include <cstddef>
#include <cstdint>

#include "scalecom/core/device.h"
#include "scalecom/core/dtype.h"

namespace scalecom::core {

/// A contiguous array that somebody else owns: a gradient bucket.
struct Buffer {
  void* data = nullptr;
  std::int64_t elements = 0;
  DType dtype = DType::kFloat32;
  Device device = {};

  static Buffer of(float* data, std::int64_t elements) { return {data, elements}; }

  /// Where element `index` lies.
  std::byte* at(std::int64_t index) const {
    return static_cast<std::byte*>(data) + index * size_of(dtype);
  }
};

}  // namespace scalecom::core
