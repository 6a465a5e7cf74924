#pragma once

#include <cstdint>

#include "scalecom/core/hash.h"
#include "scalecom/layout/selection.h"

namespace scalecom::kernels {

/// Which entry of each chunk of a tensor is sent, where every rank knows it without being told.
struct Draw {
  std::uint64_t seed = 0;
  std::uint64_t shift = 0;  ///< from the entry that the seed gives, round the chunk

  /// The place in a chunk of `size` elements, under 2^32; `chunk` is its number in its tensor.
  constexpr std::uint64_t place(std::uint64_t chunk, std::uint64_t size) const {
    // The upper half of the hash, scaled to [0, size): no place's chance is off by more than 2^-32.
    const std::uint64_t first = ((core::combine(seed, chunk) >> 32) * size) >> 32;
    return shift == 0 ? first : (first + shift) % size;
  }
};

/// The draw of a step, for the tensor whose name has the hash `tensor`. A random one is new in
/// every step; one in turn begins somewhere in each chunk and goes on by an entry a step.
constexpr Draw draw_of(layout::Selection::Kind kind, std::uint64_t seed, std::int64_t step,
                       std::uint64_t tensor) {
  const auto number = static_cast<std::uint64_t>(step);
  if (kind == layout::Selection::Kind::kTurn) return {core::combine(seed, tensor), number};
  return {core::combine(core::combine(seed, number), tensor), 0};
}

}  // namespace scalecom::kernels
