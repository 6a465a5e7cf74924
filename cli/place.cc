#include "cli/place.h"

#include <CLI/CLI.hpp>

#include "scalecom/core/error.h"
#include "scalecom/core/text.h"

namespace cli {

namespace core = scalecom::core;

void Place::add_to(CLI::App& command) {
  command
      .add_option("--checkpoint-every", checkpoint_every,
                  "Steps between checkpoints (one with each line of metrics)")
      ->type_name("STEPS");
  command
      .add_option(
          "--threads", threads,
          "Learners that a process has compute at once (its processors); on a GPU, where those of "
          "some models are joined into one batch, how many to compute apart instead")
      ->type_name("T");
  command
      .add_option("--device", device_name,
                  "Where to compute: cpu, cuda or cuda:1 (cpu); a GPU takes one process")
      ->type_name("DEVICE");
}

void Place::complete(const std::string& command) {
  if (threads.value_or(1) < 1) {
    throw core::UsageError(
        core::concat("[", command, "] --threads is out of range; give 1 or more"));
  }
  if (checkpoint_every.value_or(1) < 1) {
    throw core::UsageError(
        core::concat("[", command, "] --checkpoint-every is out of range; give 1 step or more"));
  }
  device = core::parse_device(device_name);
}

}  // namespace cli
