#pragma once

#include <cstdint>

#include "scalecom/kernels/momentum.h"
#include "scalecom/methods/sparse/options.h"

namespace scalecom::methods::dgc {

struct Options : sparse::Options {
  static constexpr const char* kName = "dgc";

  double momentum = 0.9;
  int nesterov = 0;         ///< off, on
  double clip = 0;          ///< the largest norm of a bucket's gradient, times sqrt(n); 0 is none
  std::int64_t warmup = 0;  ///< steps over which the rate rises: 4, 16, 64, 256, a quarter each

  Options() { rate = 1000; }
  core::OptionTable table();

  /// No tensor's rate is over this in a step.
  double most_rate(std::int64_t step) const;
  /// What brings a gradient whose squares have this sum down to the norm that each of `ranks` may
  /// have.
  float clipping(double sum_of_squares, int ranks) const;
  kernels::Momentum motion() const { return {static_cast<float>(momentum), nesterov != 0}; }
};

}  // namespace scalecom::methods::dgc
