#pragma once

#include "scalecom/kernels/sketch.h"

namespace scalecom::kernels::reference {

void find_places(const std::uint32_t* hashes, std::uint32_t columns, std::int64_t count,
                 std::uint32_t* places);

}  // namespace scalecom::kernels::reference
