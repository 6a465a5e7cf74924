#pragma once

#include <memory>
#include <string>

#include "scalecom/core/options.h"
#include "scalecom/methods/method.h"

namespace scalecom::methods {

/// The whole gradient in fp32: what training without compression does. No options.
std::unique_ptr<Method> make_dense(const core::OptionString& options);
std::string dense_options();

}  // namespace scalecom::methods
