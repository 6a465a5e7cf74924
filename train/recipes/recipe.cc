#include "train/recipes/recipe.h"

#include <algorithm>
#include <filesystem>
#include <functional>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "scalecom/core/error.h"
#include "scalecom/core/text.h"
#include "train/recipes/files.h"
#include "train/runs/json.h"
#include "train/runs/run_folder.h"

namespace train::recipes {
namespace {

namespace core = scalecom::core;
namespace fs = std::filesystem;
using nlohmann::ordered_json;

using Take = std::function<void(Recipe&, const ordered_json&)>;

bool is_masked(const std::string& momentum) {
  if (momentum == "masked") return true;
  if (momentum == "plain") return false;
  throw core::UsageError(core::concat("momentum '", momentum, "' is not plain or masked"));
}

int small_number(const ordered_json& value) {
  return static_cast<int>(runs::whole_number(value, 1, std::numeric_limits<int>::max()));
}

const std::vector<std::pair<std::string, Take>>& keys() {
  static const std::vector<std::pair<std::string, Take>> all{
      {"version", [](Recipe& r, const ordered_json& v) { r.version = small_number(v); }},
      {"about", [](Recipe& r, const ordered_json& v) { v.get_to(r.about); }},
      {"priority", [](Recipe& r, const ordered_json& v) { r.priority = small_number(v); }},
      {"task", [](Recipe& r, const ordered_json& v) { v.get_to(r.request.task); }},
      {"learners", [](Recipe& r, const ordered_json& v) { r.request.learners = small_number(v); }},
      {"method", [](Recipe& r, const ordered_json& v) { v.get_to(r.request.method); }},
      {"groups", [](Recipe& r, const ordered_json& v) { r.request.groups = small_number(v); }},
      {"epochs", [](Recipe& r, const ordered_json& v) { r.request.epochs = v.get<double>(); }},
      {"batch", [](Recipe& r, const ordered_json& v) { r.request.batch = small_number(v); }},
      {"learning_rate",
       [](Recipe& r, const ordered_json& v) { r.request.learning_rate = v.get<double>(); }},
      {"learning_rate_warmup",
       [](Recipe& r, const ordered_json& v) { r.request.learning_rate_warmup = v.get<double>(); }},
      {"weight_decay",
       [](Recipe& r, const ordered_json& v) { r.request.weight_decay = v.get<double>(); }},
      {"momentum",
       [](Recipe& r, const ordered_json& v) {
         r.request.masked_momentum = is_masked(v.get<std::string>());
       }},
      {"seeds",
       [](Recipe& r, const ordered_json& v) {
         for (const auto& seed : v.get<ordered_json::array_t>()) {
           r.seeds.push_back(runs::whole_number(seed, 0, std::numeric_limits<std::int64_t>::max()));
         }
       }},
      {"baseline", [](Recipe& r, const ordered_json& v) { v.get_to(r.baseline); }}};
  return all;
}

constexpr const char* kNeeded[] = {"version", "task", "learners", "method", "seeds"};

const Take& take_of(const std::string& key) {
  std::vector<std::string> allowed;
  for (const auto& [name, take] : keys()) {
    if (name == key) return take;
    allowed.push_back(name);
  }
  throw core::UsageError(
      core::concat("'", key, "' is not a key of a recipe; there are ", core::join(allowed)));
}

void fill(Recipe& recipe, const ordered_json& json) {
  if (!json.is_object()) throw core::UsageError("it is not a JSON object");
  for (const auto& [key, value] : json.items()) {
    const Take& take = take_of(key);
    try {
      take(recipe, value);
    } catch (const nlohmann::json::exception&) {
      throw core::UsageError(core::concat("'", key, "' cannot be ", value.dump()));
    } catch (const core::UsageError& error) {
      throw core::UsageError(core::concat("'", key, "': ", error.what()));
    }
  }
  for (const char* key : kNeeded) {
    if (!json.contains(key)) throw core::UsageError(core::concat("it has no '", key, "'"));
  }
  if (recipe.seeds.empty()) throw core::UsageError("'seeds' is empty");
  if (std::set<std::int64_t>(recipe.seeds.begin(), recipe.seeds.end()).size() !=
      recipe.seeds.size()) {
    throw core::UsageError("a number stands twice among 'seeds'");
  }
}

}  // namespace

std::vector<std::string> names() {
  std::vector<std::string> names;
  for (const File& file : files()) names.emplace_back(file.name);
  std::sort(names.begin(), names.end());
  return names;
}

Recipe parse(const std::string& name, const ordered_json& json, const std::string& origin) {
  Recipe recipe;
  recipe.name = name;
  try {
    fill(recipe, json);
    static_cast<void>(runs::resolve(recipe.request));
  } catch (const core::UsageError& error) {
    throw core::UsageError(core::concat("[recipe] ", origin, ": ", error.what()));
  }
  recipe.request.recipe = core::concat(name, "@", recipe.version);
  return recipe;
}

Recipe find(const std::string& name_or_path) {
  for (const File& file : files()) {
    if (name_or_path == file.name) {
      return parse(name_or_path, ordered_json::parse(file.content), name_or_path);
    }
  }
  const fs::path path = name_or_path;
  if (path.extension() == ".json")
    return parse(path.stem().string(), runs::read_json(path), path.string());
  throw core::UsageError(core::concat(
      "[recipe] '", name_or_path, "' is not a recipe, nor a file that ends in .json; there are ",
      core::join(names())));
}

}  // namespace train::recipes
