#pragma once

#include <string>

namespace scalecom::torch {

/// What torch has to say; its messages go on with where in torch they were thrown.
inline std::string first_line(const std::string& message) {
  return message.substr(0, message.find('\n'));
}

}  // namespace scalecom::torch
