#pragma once

#include <cstdint>
#include <span>

namespace scalecom::comm {

/// out[i] = ((parts[0][i] + parts[1][i]) + parts[2][i]) + ... for `count` elements, two parts or
/// more. `out` may be one of the parts; otherwise nothing overlaps.
void sum_in_order(std::span<const float* const> parts, float* out, std::int64_t count);

}  // namespace scalecom::comm
