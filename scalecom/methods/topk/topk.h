#pragma once

#include <memory>
#include <string>

#include "scalecom/core/options.h"
#include "scalecom/methods/method.h"

namespace scalecom::methods::topk {

/// Top-K with error feedback: every rank sends the largest of each tensor, all ranks gather what
/// all have sent. Options: rate, rates, first, nonfinite, warmup.
std::unique_ptr<Method> make(const core::OptionString& options);
std::string allowed_options();

}  // namespace scalecom::methods::topk
