#pragma once

#include <cfenv>

namespace scalecom::core {

/// While it lives, its thread computes as IEEE 754 does by default: rounds to nearest, and flushes
/// nothing to zero. A program may have asked for something else (-ffast-math,
/// torch.set_flush_denormal), of some of its threads or of all, and the bits of a step must not
/// depend on which thread took which part of it. Afterwards the thread is as it was.
class DefaultArithmetic {
 public:
  DefaultArithmetic() {
    std::fegetenv(&before_);
    std::fesetenv(FE_DFL_ENV);
  }
  ~DefaultArithmetic() { std::fesetenv(&before_); }
  DefaultArithmetic(const DefaultArithmetic&) = delete;
  DefaultArithmetic& operator=(const DefaultArithmetic&) = delete;

 private:
  std::fenv_t before_{};
};

}  // namespace scalecom::core
