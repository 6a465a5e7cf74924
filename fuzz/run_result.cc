#include <nlohmann/json.hpp>

#include "fuzz/input.h"
#include "fuzz/limits.h"
#include "fuzz/run.h"
#include "scalecom/core/error.h"
#include "train/runs/json.h"

/// A run's result.json: refused, or what the table and the summary take from it is there.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::write(fuzz::run().path() / "result.json", data, size);
  const fuzz::Limits limits((std::size_t{1} << 20) + 512 * size);
  try {
    const nlohmann::ordered_json result = fuzz::run().result();
    for (const char* const key : {"value", "peak_bytes", "learners"}) {
      fuzz::require(train::runs::number(result, key).has_value(), "a result has its numbers");
    }
    for (const char* const key : {"metric", "method"}) {
      fuzz::require(result.at(key).is_string(), "a result has its names");
    }
    if (result.contains("inside_bytes_per_rank_step")) {
      fuzz::require(result.contains("group"),
                    "what is sent inside groups has their size beside it");
    }
  } catch (const scalecom::core::UsageError&) {
  }
  return 0;
}
