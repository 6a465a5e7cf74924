#include <nlohmann/json.hpp>

#include "fuzz/input.h"
#include "fuzz/limits.h"
#include "scalecom/core/error.h"
#include "train/runs/run_folder.h"

/// A run's config.json: refused, or written as it was read.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::write(fuzz::folder() / "config.json", data, size);
  const fuzz::Limits limits((std::size_t{1} << 20) + 512 * size);
  try {
    const train::runs::RunFolder run = train::runs::RunFolder::open(fuzz::folder());
    const auto json = train::runs::to_json(run.config());
    fuzz::require(train::runs::to_json(train::runs::config_from_json(json)) == json,
                  "a configuration is written as it was read");
    // What training asks of it first.
    static_cast<void>(run.config().optimizer_options());
    static_cast<void>(train::runs::warmup_of(run.config().spec));
  } catch (const scalecom::core::UsageError&) {
  }
  return 0;
}
