#pragma once

#include <memory>
#include <string>

#include "scalecom/core/options.h"
#include "scalecom/methods/method.h"

namespace scalecom::methods {

/// The whole gradient in 16-bit values (values=fp16 or bf16), summed in fp32. No error feedback.
std::unique_ptr<Method> make_half(const core::OptionString& options);
std::string half_options();

}  // namespace scalecom::methods
