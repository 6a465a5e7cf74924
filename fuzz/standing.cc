#include "fuzz/input.h"
#include "fuzz/limits.h"
#include "scalecom/core/error.h"
#include "train/loop/checkpoint.h"

/// A checkpoint's standing.json: refused, or what was read comes back once it is written.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::write(fuzz::folder() / "standing.json", data, size);
  const fuzz::Limits limits((std::size_t{1} << 20) + 512 * size);
  try {
    const train::loop::Standing standing =
        train::loop::read_standing(fuzz::folder(), train::runs::kLargestBatch);
    train::runs::divide_anew(standing.tallies, 3);
    train::loop::write_standing(fuzz::folder(), standing);
    const train::loop::Standing back = train::loop::read_standing(fuzz::folder(), 1);
    fuzz::require(back.step == standing.step && back.samples == standing.samples &&
                      back.tallies.size() == standing.tallies.size(),
                  "a standing comes back");
  } catch (const scalecom::core::UsageError&) {
  }
  return 0;
}
