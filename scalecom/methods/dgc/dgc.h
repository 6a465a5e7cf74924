#pragma once

#include <memory>
#include <string>

#include "scalecom/core/options.h"
#include "scalecom/methods/method.h"

namespace scalecom::methods::dgc {

/// Deep Gradient Compression: momentum before compression, velocity and memory cleared where
/// something is sent, a threshold from a sample, local clipping, and a rate that rises over the
/// first steps. What comes out has momentum in it, so an optimizer is to add none.
std::unique_ptr<Method> make(const core::OptionString& options);
std::string allowed_options();

/// The name under which a tensor's velocity is saved, beside its memory. UsageError for a tensor
/// that has such a name itself.
std::string velocity_name(const std::string& tensor);

}  // namespace scalecom::methods::dgc
