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

/// Weighted error feedback on the same sets: u = a*grad + b*m, and m is what of u is not sent. With
/// a and b of 1 it is ScaleCom without its filter.
std::unique_ptr<Method> make_weighted(const core::OptionString& options);
std::string weighted_options();

}  // namespace scalecom::methods::scalecom
