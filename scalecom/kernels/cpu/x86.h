#pragma once

#include "scalecom/kernels/kernels.h"

/// The tables of this folder's instruction sets. A processor without one may ask for its table, but
/// not call it.
namespace scalecom::kernels::cpu {

const Table& avx2();
const Table& avx512();

}  // namespace scalecom::kernels::cpu
