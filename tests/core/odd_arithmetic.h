#pragma once

#include <cfenv>
#include <limits>

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

/// A thread that computes as a program may have asked it to.
namespace scalecom::core {

/// While it lives, this thread rounds upwards and, where the processor can, flushes to zero, as
/// under -ffast-math.
class OddArithmetic {
 public:
  OddArithmetic() {
    std::fegetenv(&before_);
    std::fesetround(FE_UPWARD);
#if defined(__x86_64__)
    constexpr unsigned kFlushBoth = 0x8040;  // results, and what is read
    _mm_setcsr(_mm_getcsr() | kFlushBoth);
#endif
  }
  ~OddArithmetic() {
    std::fesetenv(&before_);
  }
  OddArithmetic(const OddArithmetic&) = delete;
  OddArithmetic& operator=(const OddArithmetic&) = delete;

 private:
  std::fenv_t before_{};
};

/// Whether this thread rounds to nearest and keeps subnormal numbers.
inline bool has_default_arithmetic() {
  const volatile float least = std::numeric_limits<float>::min();
  const volatile float half = 0.5F;
  const volatile float subnormal = least * half;
  return std::fegetround() == FE_TONEAREST && subnormal * 2 == least;
}

}  // namespace scalecom::core
