#include "scalecom/kernels/cpu/cpu.h"

namespace scalecom::kernels::cpu {

std::vector<const Table*> available() {
  return {};
}

}  // namespace scalecom::kernels::cpu
