#pragma once

#include <filesystem>
#include <string>

#include "scalecom/core/error.h"
#include "scalecom/core/text.h"

namespace scalecom::state {

/// core::UsageError for a file that is not what it should be: `what` is wrong with it.
[[noreturn]] inline void refuse(const std::filesystem::path& path, const std::string& what) {
  throw core::UsageError(core::concat("[state] '", path.string(), "' ", what));
}

}  // namespace scalecom::state
