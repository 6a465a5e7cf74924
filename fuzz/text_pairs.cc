#include <algorithm>

#include "fuzz/input.h"
#include "fuzz/limits.h"
#include "scalecom/core/error.h"
#include "train/data/text_pairs.h"

/// Sentences and their translations, which the first zero byte parts.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto middle = static_cast<std::size_t>(std::find(data, data + size, 0) - data);
  const std::filesystem::path source = fuzz::folder() / "one.en";
  const std::filesystem::path target = fuzz::folder() / "one.de";
  fuzz::write(source, data, middle);
  fuzz::write(target, data + middle, size - middle);
  const fuzz::Limits limits((std::size_t{1} << 18) + 256 * size);
  try {
    const train::data::TextPairs pairs = train::data::read_text_pairs(source, target);
    fuzz::require(pairs.source.size() == pairs.target.size(), "every sentence has a translation");
  } catch (const scalecom::core::UsageError&) {
  }
  return 0;
}
