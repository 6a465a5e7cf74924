#pragma once

#include <vector>

#include "scalecom/kernels/kernels.h"

namespace scalecom::kernels::cpu {

/// The vector kernels that this build has and this processor can run, the best last.
std::vector<const Table*> available();

}  // namespace scalecom::kernels::cpu
