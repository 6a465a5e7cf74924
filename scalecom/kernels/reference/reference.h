#pragma once

#include "scalecom/kernels/kernels.h"

namespace scalecom::kernels::reference {

/// The plain scalar kernels: always built, and the judge of all others.
const Table& table();

}  // namespace scalecom::kernels::reference
