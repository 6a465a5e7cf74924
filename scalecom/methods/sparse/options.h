#pragma once

#include <cstdint>

#include "scalecom/core/options.h"
#include "scalecom/layout/rates.h"
#include "scalecom/methods/nonfinite.h"

namespace scalecom::methods::sparse {

/// What every sparse method is told: how much of which tensors to send, and what to make of a NaN.
struct Options {
  double rate = 100;  ///< one value in `rate` is sent, of the compressed slices
  layout::RatePolicy rates;
  OnNonFinite nonfinite;
  std::int64_t dense_steps = 0;  ///< how many of the first travel dense

  /// Binds these keys to a table, in this order.
  void declare(core::OptionTable& table);
  /// `warmup`, for methods to which that is a number of dense steps.
  void declare_warmup(core::OptionTable& table);
};

}  // namespace scalecom::methods::sparse
