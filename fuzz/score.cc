#include "cli/scores.h"

#include "fuzz/input.h"
#include "fuzz/limits.h"
#include "scalecom/core/error.h"

/// A run's score.json, and that of the run that it is compared with: refused, or read.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::filesystem::path baseline = fuzz::folder() / "plain/seed-1";
  const std::filesystem::path run = fuzz::folder() / "sparse/seed-1";
  std::filesystem::create_directories(baseline);
  std::filesystem::create_directories(run);
  fuzz::write(baseline / "score.json", data, size);
  fuzz::write(run / "score.json", data, size);
  const fuzz::Limits limits((std::size_t{1} << 20) + 512 * size);
  try {
    const std::optional<cli::Score> scored = cli::read_score(run);
    fuzz::require(scored.has_value(), "a score that is there and not refused is read");
    const bool paired = cli::paired_interval(*scored, baseline).has_value();
    fuzz::require(!paired || scored->paired, "an interval comes from what was paired");
    fuzz::require(cli::is_scored(run, baseline) == paired, "scored against the baseline is scored");
  } catch (const scalecom::core::UsageError&) {
    fuzz::require(!cli::is_scored(run, std::nullopt), "one that is damaged is no score");
  }
  return 0;
}
