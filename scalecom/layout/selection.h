#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "scalecom/layout/layout.h"

namespace scalecom::layout {

/// Which entries of a bucket's compressed slices are sent.
struct Selection {
  enum class Kind : std::uint8_t {
    kLargest,  ///< the largest of every chunk of `rate` elements
    kTop,      ///< the largest max(1, round(length / rate)) of every chunk of `chunk` elements
    kExact,    ///< exactly k over the whole bucket
    kRandom,   ///< one of every chunk of `rate` elements, drawn from a shared seed
  };

  Kind kind = Kind::kLargest;
  std::int64_t chunk = 0;  ///< of kTop
};

/// A compressed slice cut into chunks, of which each keeps a fixed number of entries. The tail,
/// shorter than the rest, is a chunk.
struct Cut {
  std::int64_t length = 0;
  std::int64_t chunk = 1;
  std::int64_t keep = 1;       ///< entries that a whole chunk keeps
  std::int64_t keep_tail = 0;  ///< entries that the tail keeps; 0 where there is none

  constexpr std::int64_t chunks() const { return (length + chunk - 1) / chunk; }
  constexpr std::int64_t kept() const { return length / chunk * keep + keep_tail; }
  /// Kept entries in the chunks before `c`.
  constexpr std::int64_t kept_before(std::int64_t c) const {
    return c <= length / chunk ? c * keep : kept();
  }
};

/// Elements of a chunk of a slice's whole tensor; 1 where a selection does not look at chunks.
inline std::int64_t chunk_of(const Slice& slice, const Selection& selection) {
  constexpr double kLargest = 0x1p62;
  if (slice.dense() || selection.kind == Selection::Kind::kExact) return 1;
  if (selection.kind == Selection::Kind::kTop) return selection.chunk;
  return std::llround(std::min(slice.rate, kLargest));
}

/// The cut of one slice; kExact, which does not look at chunks, has none.
inline Cut cut(const Slice& slice, const Selection& selection) {
  const auto kept_of = [&](std::int64_t elements) {
    return std::max<std::int64_t>(1, std::llround(static_cast<double>(elements) / slice.rate));
  };
  // Any finite rate is allowed; no chunk is longer than its slice.
  const auto longest = static_cast<double>(std::max<std::int64_t>(1, slice.length));
  Cut cut{slice.length, std::llround(std::clamp(slice.rate, 1.0, longest)), 1, 0};
  if (selection.kind == Selection::Kind::kTop) {
    cut.chunk = selection.chunk;
    cut.keep = kept_of(cut.chunk);
  }
  if (const std::int64_t tail = cut.length % cut.chunk; tail > 0) {
    cut.keep_tail = selection.kind == Selection::Kind::kTop ? kept_of(tail) : 1;
  }
  return cut;
}

}  // namespace scalecom::layout
