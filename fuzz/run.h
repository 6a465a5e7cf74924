#pragma once

#include "train/runs/run_folder.h"

namespace fuzz {

/// A run in folder(), of one step and with no files yet but its configuration: what is fuzzed is
/// written beside that.
train::runs::RunFolder& run();

}  // namespace fuzz
