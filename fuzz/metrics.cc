#include <nlohmann/json.hpp>

#include "fuzz/input.h"
#include "fuzz/limits.h"
#include "fuzz/run.h"

/// A run's metrics.jsonl, which may be cut short anywhere: what is whole is kept.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::write(fuzz::run().path() / "metrics.jsonl", data, size);
  const fuzz::Limits limits((std::size_t{1} << 20) + 1024 * size);
  const std::size_t lines = fuzz::run().metrics().size();
  constexpr std::int64_t kHalf = 1000;
  fuzz::run().forget_lines_after(kHalf);
  const auto kept = fuzz::run().metrics();
  fuzz::require(kept.size() <= lines, "no line comes from nowhere");
  for (const auto& line : kept) {
    fuzz::require(line["step"].get<std::int64_t>() <= kHalf, "later lines are forgotten");
  }
  return 0;
}
