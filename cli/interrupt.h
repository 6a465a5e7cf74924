#pragma once

#include <atomic>

namespace cli {

/// From now on the first SIGINT or SIGTERM only sets this; a second one ends the program at once.
const std::atomic<bool>& catch_interrupts();

}  // namespace cli
