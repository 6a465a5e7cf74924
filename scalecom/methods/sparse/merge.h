#pragma once

#include "scalecom/methods/sparse/items.h"

namespace scalecom::methods::sparse {

/// What a merge keeps, and what it has no room for.
struct Merged {
  Items kept;
  Items dropped;
};

/// The sums of two sets of entries with the same runs: of every part the `count` largest
/// magnitudes, the lowest positions among equals, are kept.
Merged merge(const Items& a, const Items& b);

}  // namespace scalecom::methods::sparse
