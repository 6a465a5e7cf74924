#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "scalecom/layout/layout.h"
#include "scalecom/methods/method.h"

namespace train::similarity {

/// A learner's error feedback at its places in the bucket, without a copy: of those tensors, or
/// parts of them, that it has a memory of. What else a method remembers is left out.
class FlatMemory {
 public:
  /// The memories are the host's, as Method::memories() lists them, and stay as they are.
  FlatMemory(const scalecom::layout::Layout& layout,
             std::span<const scalecom::methods::NamedMemory> memories);

  /// Elements that there is a memory of.
  std::int64_t elements() const { return elements_; }

  /// Those of the bucket from `begin` on, 0 where there is no memory.
  void copy(std::int64_t begin, std::span<float> out) const;
  /// All of it, whatever its places.
  void append_to(std::vector<float>& out) const;

 private:
  struct Piece {
    std::int64_t offset;
    std::span<const float> values;
  };

  std::vector<Piece> pieces_;
  std::int64_t elements_ = 0;
};

}  // namespace train::similarity
