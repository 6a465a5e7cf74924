#include "train/runs/json.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "scalecom/core/error.h"
#include "scalecom/core/text.h"
#include "scalecom/state/text_file.h"

namespace train::runs {
namespace {

namespace core = scalecom::core;
using nlohmann::ordered_json;

constexpr int kDeepest = 32;

/// Ends a text that goes deeper; not an error of JSON.
struct TooDeep {};

}  // namespace

std::optional<ordered_json> parse_json(const std::string& text) {
  const auto limit = [](int depth, ordered_json::parse_event_t /*event*/, ordered_json& /*part*/) {
    if (depth > kDeepest) throw TooDeep();
    return true;
  };
  try {
    return ordered_json::parse(text, limit);
  } catch (const nlohmann::json::exception&) {
    return std::nullopt;
  } catch (const TooDeep&) {
    return std::nullopt;
  }
}

ordered_json read_json(const std::filesystem::path& path) {
  if (auto json = parse_json(scalecom::state::read_text(path))) return *std::move(json);
  throw core::UsageError(core::concat("[run] ", path.string(), " is damaged: it is not JSON"));
}

void write_json(const std::filesystem::path& path, const ordered_json& json) {
  scalecom::state::write_text(path, json.dump(2) + "\n");
}

bool is_whole_number(const ordered_json& value, std::int64_t low, std::int64_t high) {
  if (value.is_number_unsigned()) {
    const auto number = value.get<std::uint64_t>();
    return std::cmp_greater_equal(number, low) && std::cmp_less_equal(number, high);
  }
  if (!value.is_number_integer()) return false;
  const auto number = value.get<std::int64_t>();
  return number >= low && number <= high;
}

std::int64_t whole_number(const ordered_json& value, std::int64_t low, std::int64_t high) {
  if (is_whole_number(value, low, high)) return value.get<std::int64_t>();
  throw core::UsageError(
      core::concat(value.dump(), " is no whole number from ", low, " to ", high));
}

std::int64_t whole_number(const ordered_json& object, const char* key, std::int64_t low,
                          std::int64_t high) {
  try {
    return whole_number(object.at(key), low, high);
  } catch (const core::UsageError& error) {
    throw core::UsageError(core::concat("'", key, "' ", error.what()));
  }
}

std::optional<double> number(const nlohmann::ordered_json& object, const char* key) {
  const auto found = object.find(key);
  if (found == object.end() || !found->is_number()) return std::nullopt;
  return found->get<double>();
}

}  // namespace train::runs
