#pragma once

#include <memory>
#include <string>

#include "scalecom/core/options.h"
#include "scalecom/methods/method.h"

namespace scalecom::methods::scalecom {

/// ScaleCom: one rank names the entries, all ranks send those, and what is not sent stays in a
/// low-pass filtered memory. Options: options.h.
std::unique_ptr<Method> make(const core::OptionString& options);
std::string allowed_options();

}  // namespace scalecom::methods::scalecom
