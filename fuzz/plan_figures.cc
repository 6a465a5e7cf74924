#include "cli/plan_files.h"
#include "fuzz/input.h"
#include "fuzz/limits.h"
#include "scalecom/core/error.h"
#include "scalecom/methods/method.h"

/// Figures to plan with: what `scalecom bench` measured of kernels, or `plan --measure` of a
/// network.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::filesystem::path path = fuzz::folder() / "figures.json";
  fuzz::write(path, data, size);
  const fuzz::Limits limits((std::size_t{1} << 20) + 1024 * size);
  try {
    const auto kernels = cli::plan_kernels(path.string());
    static const std::string spec = scalecom::methods::make("scalecom,rate=100")->spec();
    for (const double elements : {1.0, 1e6, 1e12}) {
      const auto seconds = kernels.seconds(spec, elements);
      fuzz::require(!seconds || *seconds >= 0, "a kernel takes time");
    }
  } catch (const scalecom::core::UsageError&) {
  }
  try {
    const auto link = cli::plan_link(path.string());
    fuzz::require(link.bandwidth > 0 && link.latency >= 0, "a link is one");
    for (const double bytes : {0.0, 1e3, 1e9}) {
      fuzz::require(link.hop_seconds(bytes) >= 0, "a hop takes time");
    }
  } catch (const scalecom::core::UsageError&) {
  }
  return 0;
}
