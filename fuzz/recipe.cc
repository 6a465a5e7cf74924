#include "train/recipes/recipe.h"

#include "fuzz/input.h"
#include "fuzz/limits.h"
#include "scalecom/core/error.h"

/// A recipe's file: refused, or it says all of a run.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::filesystem::path path = fuzz::folder() / "one.json";
  fuzz::write(path, data, size);
  const fuzz::Limits limits((std::size_t{1} << 20) + 512 * size);
  try {
    const train::recipes::Recipe recipe = train::recipes::find(path.string());
    fuzz::require(!recipe.seeds.empty(), "a recipe has seeds");
    train::runs::Request request = recipe.request;
    for (const std::int64_t seed : recipe.seeds) {
      request.seed = seed;
      train::runs::resolve(request);
    }
  } catch (const scalecom::core::UsageError&) {
  }
  return 0;
}
