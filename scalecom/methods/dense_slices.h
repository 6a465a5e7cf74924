#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "scalecom/core/buffer.h"
#include "scalecom/layout/layout.h"
#include "scalecom/methods/memory_store.h"

namespace scalecom::methods {

/// The slices of a bucket that travel whole beside the compressed ones, one after the other in
/// fp32. In host memory.
class DenseSlices {
 public:
  void add(const layout::Slice& slice);
  std::int64_t elements() const { return elements_; }

  /// Gradient to `out`, times `factor`. Returns whether all is finite.
  bool load(const core::Buffer& grad, float factor, float* out) const;
  /// And back.
  void store(const float* in, const core::Buffer& grad) const;

  /// A slice that is dense now and was compressed before sends all that its memory holds: adds
  /// that, times `factor`, to the fp32 gradient `dense`, in which the slices lie one after the
  /// other, or as in the bucket.
  enum class Order : std::uint8_t { kOneAfterTheOther, kAsInTheBucket };
  void fold(MemoryStore& memories, float factor, float* dense, Order order) const;
  /// Those memories are out, and can come back until they are forgotten.
  void set_aside(MemoryStore& memories) const;

 private:
  struct Part {
    std::string name;
    std::int64_t offset = 0;
    std::int64_t length = 0;
  };
  std::vector<Part> parts_;
  std::int64_t elements_ = 0;
};

/// The whole bucket becomes NaN.
void spoil(const core::Buffer& grad);

/// For methods that have no side for a GPU. UsageError, naming the method, where `device` is one.
void require_host(const std::string& method, core::Device device);

}  // namespace scalecom::methods
