#pragma once

#include <cstdint>

namespace train {

/// The most memory that this process has had in use at any time.
std::int64_t peak_bytes();

}  // namespace train
