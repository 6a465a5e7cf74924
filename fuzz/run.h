#pragma once

#include "train/run_folder.h"

namespace fuzz {

/// A run in folder(), of one step and with no files yet but its configuration: what is fuzzed is
/// written beside that.
train::RunFolder& run();

}  // namespace fuzz
