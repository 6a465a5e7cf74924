#include "train/data/wav.h"
#include "fuzz/input.h"
#include "fuzz/limits.h"
#include "scalecom/core/error.h"

/// A recording.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::filesystem::path path = fuzz::folder() / "one.wav";
  fuzz::write(path, data, size);
  const fuzz::Limits limits((std::size_t{1} << 18) + 16 * size);
  try {
    train::data::read_wav(path, 8000);
  } catch (const scalecom::core::UsageError&) {
  }
  return 0;
}
