#include "scalecom/kernels/cpu/x86.h"

#include <cpuid.h>

#include "scalecom/kernels/cpu/cpu.h"

namespace scalecom::kernels::cpu {

namespace {

// Not every compiler knows this one by name.
bool has_f16c() {
  unsigned int eax = 0;
  unsigned int ebx = 0;
  unsigned int ecx = 0;
  unsigned int edx = 0;
  return __get_cpuid(1, &eax, &ebx, &ecx, &edx) != 0 && (ecx & bit_F16C) != 0;
}

}  // namespace

std::vector<const Table*> available() {
  std::vector<const Table*> found;
  const bool has_avx2 =
      __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && has_f16c();
  if (has_avx2) found.push_back(&avx2());
  const bool has_avx512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                          __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq");
  if (has_avx2 && has_avx512) found.push_back(&avx512());
  return found;
}

}  // namespace scalecom::kernels::cpu
