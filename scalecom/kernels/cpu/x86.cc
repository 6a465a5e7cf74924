#include "scalecom/kernels/cpu/x86.h"

#include "scalecom/kernels/cpu/cpu.h"

namespace scalecom::kernels::cpu {

std::vector<const Table*> available() {
  std::vector<const Table*> found;
  const bool has_avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
                        __builtin_cpu_supports("f16c");
  if (has_avx2) found.push_back(&avx2());
  const bool has_avx512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                          __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq");
  if (has_avx2 && has_avx512) found.push_back(&avx512());
  return found;
}

}  // namespace scalecom::kernels::cpu
