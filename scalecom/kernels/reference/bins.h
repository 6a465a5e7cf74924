#pragma once

#include "scalecom/kernels/kernels.h"

namespace scalecom::kernels::reference {

std::int64_t find_in_bin(const Tensor& tensor, std::int64_t begin, std::int64_t end,
                         bins::Found& found);

}  // namespace scalecom::kernels::reference
