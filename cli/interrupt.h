#pragma once

#include <atomic>

namespace cli {

/// From now on the first SIGINT or SIGTERM only sets this, with those that follow within a second;
/// one after that ends the program at once.
const std::atomic<bool>& catch_interrupts();

}  // namespace cli
