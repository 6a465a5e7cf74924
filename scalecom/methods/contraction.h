#pragma once

#include <optional>
#include <span>

#include "scalecom/layout/layout.h"
#include "scalecom/layout/selection.h"

namespace scalecom::methods {

/// How much of y, the mean over learners of all that there was to send, a step left behind, beside
/// what it would have left had the entries been chosen from y itself.
struct Contraction {
  /// Half the Hamming distance between the entries that were sent and those that the same selection
  /// takes from y, over their number: 0 for the same, 1 where none was sent. Entries of y that are
  /// 0 count in neither.
  double hamming = 0;
  double measured = 0;  ///< ||y - sent||^2 / ||y||^2
  double exact = 0;     ///< the same of the entries that are taken from y

  /// Lemma 1's bound on `measured`.
  double bound() const { return hamming + (1 - hamming) * exact; }
};

/// Over the compressed slices of a bucket; `sent` is the mean that came out, 0 where nothing was
/// sent. A selection at random is compared with the largest of its chunks. Nothing where nothing is
/// compressed, and where y is all zero or not finite.
std::optional<Contraction> measure_contraction(std::span<const float> y,
                                               std::span<const float> sent,
                                               const layout::Layout& layout,
                                               const layout::Selection& selection);

}  // namespace scalecom::methods
