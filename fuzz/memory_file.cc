#include "fuzz/input.h"
#include "fuzz/limits.h"
#include "scalecom/core/error.h"
#include "scalecom/state/memories.h"

/// The only file of a set of memories: described, and loaded into one and into three learners.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::write(fuzz::folder() / "rank-00000-of-00001.safetensors", data, size);
  const fuzz::Limits limits((std::size_t{1} << 18) + 256 * size);
  try {
    const auto saved = scalecom::state::describe(fuzz::folder());
    fuzz::require(saved.world == 1, "a set of one file has one rank");
    scalecom::state::load(fuzz::folder(), 0, 1);
    scalecom::state::load(fuzz::folder(), 1, 3);
  } catch (const scalecom::core::UsageError&) {
  }
  return 0;
}
