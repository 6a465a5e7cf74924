#pragma once

#include <cstdint>
#include <string>

#include "scalecom/core/options.h"
#include "scalecom/methods/nonfinite.h"

namespace scalecom::methods::powersgd {

struct Options {
  enum WarmStart { kOn, kOff };

  std::int64_t rank = 1;
  int warm_start = kOn;  ///< Q is that of the last step, or drawn anew in every step
  std::int64_t seed = 0;
  /// Steps that travel dense at first. None, as in the paper: error feedback holds from the start.
  /// PyTorch's hook waits for 1,000.
  std::int64_t warmup = 0;
  OnNonFinite nonfinite;

  /// UsageError for an unknown key or a value out of range; then nothing has changed.
  void read(const core::OptionString& options);
  std::string text() const;
  static std::string allowed();

 private:
  core::OptionTable table();
};

}  // namespace scalecom::methods::powersgd
