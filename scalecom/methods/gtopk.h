#pragma once

#include <memory>
#include <string>

#include "scalecom/core/options.h"
#include "scalecom/methods/method.h"

namespace scalecom::methods {

/// Global Top-K with error feedback: every rank's largest entries of each tensor are merged two
/// ranks at a time, in ceil(log2 n) rounds, and only the largest of the merged survive each round.
/// Options: rate, rates, first, nonfinite, warmup. Gradients in host memory.
std::unique_ptr<Method> make_gtopk(const core::OptionString& options);
std::string gtopk_options();

}  // namespace scalecom::methods
