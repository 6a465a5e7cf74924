#pragma once

#include <string>

#include "train/loop/trainer.h"

namespace CLI {  // NOLINT(readability-identifier-naming): CLI11's
class App;
}

namespace cli {

/// How a run is made, whatever it computes: --checkpoint-every, --threads and --device, which stays
/// a name until complete().
struct Place : train::loop::Place {
  std::string device_name = "cpu";

  void add_to(CLI::App& command);
  /// core::UsageError, for `command` ("train"), where a value is out of range or there is no such
  /// device.
  void complete(const std::string& command);
};

}  // namespace cli
