#include "train/data/idx.h"
#include "fuzz/input.h"
#include "fuzz/limits.h"
#include "scalecom/core/error.h"

/// An IDX file of images or of labels, plain or gzipped.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::filesystem::path path = fuzz::folder() / "one.idx";
  fuzz::write(path, data, size);
  // It reads by pieces of 1 MiB; a gzipped byte stands for a thousand at most, and a vector
  // doubles.
  const fuzz::Limits limits((std::size_t{4} << 20) + 4096 * size);
  for (const int dimensions : {1, 3}) {
    try {
      train::data::read_idx(path, dimensions);
    } catch (const scalecom::core::UsageError&) {
    }
  }
  return 0;
}
