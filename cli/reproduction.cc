#include "cli/reproduction.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "scalecom/core/error.h"
#include "scalecom/core/text.h"
#include "train/runs/json.h"
#include "train/runs/run_folder.h"

namespace cli {
namespace {

namespace core = scalecom::core;
namespace fs = std::filesystem;
namespace recipes = train::recipes;
using nlohmann::ordered_json;

/// All recipes, in the order of their priority and then of their names.
std::vector<std::string> all_rows() {
  std::vector<std::pair<int, std::string>> ranked;
  for (const std::string& name : recipes::names()) {
    ranked.emplace_back(recipes::find(name).priority, name);
  }
  std::sort(ranked.begin(), ranked.end());
  std::vector<std::string> names;
  for (auto& [priority, name] : ranked) names.push_back(std::move(name));
  return names;
}

/// The rows, each after what it is compared with.
std::vector<recipes::Recipe> wanted_rows(const std::vector<std::string>& names) {
  std::vector<recipes::Recipe> rows;
  const auto add = [&](const recipes::Recipe& recipe) {
    const auto other = std::find_if(rows.begin(), rows.end(), [&](const recipes::Recipe& row) {
      return row.name == recipe.name;
    });
    if (other == rows.end()) {
      rows.push_back(recipe);
    } else if (other->request != recipe.request || other->seeds != recipe.seeds ||
               other->baseline != recipe.baseline) {
      throw core::UsageError(core::concat("[reproduce] two recipes are called '", recipe.name,
                                          "', by which runs are kept: rename one of them"));
    }
  };
  for (const std::string& name : names.empty() ? all_rows() : names) {
    const recipes::Recipe recipe = recipes::find(name);
    if (!recipe.baseline.empty()) {
      // That of a file may be a file beside it.
      const fs::path beside = fs::path(name).parent_path() / (recipe.baseline + ".json");
      const bool is_file = fs::path(name).extension() == ".json" && fs::exists(beside);
      add(recipes::find(is_file ? beside.string() : recipe.baseline));
    }
    add(recipe);
  }
  return rows;
}

/// What decides a run of a recipe, but for how long it is, which follows from the data, and what is
/// each run's own.
ordered_json settings_of(const train::runs::Config& config) {
  ordered_json settings = train::runs::to_json(config);
  for (const char* const key : {"steps", "seed", "data", "recipe", "similarity_every"}) {
    settings.erase(key);
  }
  return settings;
}

void check_origin(const Run& run) {
  const train::runs::Config made = train::runs::RunFolder::open(run.folder).config();
  const std::string& wanted = run.recipe.request.recipe;
  if (made.recipe != wanted) {
    throw core::UsageError(core::concat("[reproduce] ", run.folder.string(), " was made by '",
                                        made.recipe, "' and not by '", wanted,
                                        "': move it away, or choose another --out"));
  }
  const ordered_json now = settings_of(train::runs::resolve(run.recipe.request));
  const ordered_json then = settings_of(made);
  for (const auto& [key, value] : then.items()) {
    if (now.contains(key) && now.at(key) == value) continue;
    throw core::UsageError(core::concat("[reproduce] ", run.folder.string(), " has ", key, " ",
                                        value.dump(), ", which '", wanted,
                                        "' no longer has: move it away, or choose another --out"));
  }
}

}  // namespace

Reproduction::Reproduction(const std::vector<std::string>& names, const fs::path& out,
                           std::optional<int> seeds)
    : rows_(wanted_rows(names)) {
  for (const recipes::Recipe& recipe : rows_) {
    int taken = 0;
    for (const std::int64_t seed : recipe.seeds) {
      if (seeds && taken++ == *seeds) break;
      runs_.push_back({recipe, seed, out / recipe.name / core::concat("seed-", seed)});
    }
  }
}

std::vector<Run> Reproduction::runs_of(const recipes::Recipe& row) const {
  std::vector<Run> runs;
  for (const Run& run : runs_) {
    if (&run.recipe == &row) runs.push_back(run);
  }
  return runs;
}

std::optional<fs::path> Reproduction::baseline_of(const Run& run) const {
  for (const Run& other : runs_) {
    if (other.recipe.name == run.recipe.baseline && other.seed == run.seed && other.is_complete()) {
      return other.folder;
    }
  }
  return std::nullopt;
}

void Reproduction::check_origins() const {
  for (const Run& run : runs_) {
    if (run.is_begun()) check_origin(run);
  }
}

}  // namespace cli
