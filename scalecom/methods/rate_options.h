#pragma once

#include "scalecom/core/options.h"
#include "scalecom/layout/rates.h"

namespace scalecom::methods {

/// The keys `rates` and `first`, which say how tensors get their rates, bound to a policy.
void declare_rates(core::OptionTable& table, layout::RatePolicy* policy);
/// The second alone.
void declare_first(core::OptionTable& table, layout::RatePolicy* policy);

}  // namespace scalecom::methods
