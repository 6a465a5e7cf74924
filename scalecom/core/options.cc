#include "scalecom/core/options.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>

#include "scalecom/core/error.h"
#include "scalecom/core/text.h"

namespace scalecom::core {
namespace {

template <typename Number>
std::optional<Number> parse_number(const std::string& text) {
  Number value{};
  const char* end = text.data() + text.size();
  const auto result = std::from_chars(text.data(), end, value);
  if (result.ec != std::errc{} || result.ptr != end || text.empty()) return std::nullopt;
  return value;
}

std::string range_text(const char* kind, const std::string& low, bool open, const std::string& high,
                       bool unlimited) {
  if (unlimited) return concat(kind, open ? " over " : " from ", low, open ? "" : " on");
  return concat(kind, " in ", open ? "(" : "[", low, ", ", high, "]");
}

}  // namespace

OptionString OptionString::parse(const std::string& text) {
  const std::vector<std::string> pieces = split(text, ',');
  OptionString parsed{pieces.front(), {}};
  for (auto piece = pieces.begin() + 1; piece != pieces.end(); ++piece) {
    const std::size_t equals = piece->find('=');
    if (equals == std::string::npos || equals == 0) {
      throw UsageError(concat("[options] '", *piece, "' in '", text, "' is not key=value"));
    }
    const std::string key = piece->substr(0, equals);
    for (const auto& [earlier, value] : parsed.settings) {
      if (earlier == key)
        throw UsageError(concat("[options] '", key, "' stands twice in '", text, "'"));
    }
    parsed.settings.emplace_back(key, piece->substr(equals + 1));
  }
  return parsed;
}

void OptionTable::number(const std::string& key, double* target, double low, Bound at_low,
                         double high) {
  const bool open = at_low == Bound::kOpen;
  custom(
      key, range_text("a number", shortest(low), open, shortest(high), std::isinf(high)),
      [=](const std::string& text) -> std::function<void()> {
        const auto value = parse_number<double>(text);
        const bool inside = value && std::isfinite(*value) &&
                            (open ? *value > low : *value >= low) && *value <= high;
        if (!inside) throw UsageError("");
        return [target, v = *value] { *target = v; };
      },
      [target] { return shortest(*target); });
}

void OptionTable::integer(const std::string& key, std::int64_t* target, std::int64_t low,
                          std::int64_t high) {
  const bool unlimited = high == std::numeric_limits<std::int64_t>::max();
  custom(
      key,
      range_text("a whole number", std::to_string(low), false, std::to_string(high), unlimited),
      [=](const std::string& text) -> std::function<void()> {
        const auto value = parse_number<std::int64_t>(text);
        if (!value || *value < low || *value > high) throw UsageError("");
        return [target, v = *value] { *target = v; };
      },
      [target] { return std::to_string(*target); });
}

void OptionTable::choice(const std::string& key, int* target,
                         const std::vector<std::string>& names) {
  const std::string allowed = join(names, " | ");
  custom(
      key, allowed,
      [target, names](const std::string& text) -> std::function<void()> {
        const auto found = std::find(names.begin(), names.end(), text);
        if (found == names.end()) throw UsageError("");
        return [target, index = static_cast<int>(found - names.begin())] { *target = index; };
      },
      [target, names] { return names[static_cast<std::size_t>(*target)]; });
}

void OptionTable::custom(const std::string& key, const std::string& allowed, Take take,
                         std::function<std::string()> show) {
  keys_.push_back({key, allowed, std::move(take), std::move(show)});
}

void OptionTable::read(const std::vector<std::pair<std::string, std::string>>& settings) const {
  std::vector<std::function<void()>> commits;
  for (const auto& [key, value] : settings) {
    const auto found = std::find_if(keys_.begin(), keys_.end(),
                                    [&key = key](const Key& k) { return k.name == key; });
    if (found == keys_.end()) {
      throw UsageError(concat("[", owner_, "] no option '", key,
                              "'; allowed: ", keys_.empty() ? "none" : allowed()));
    }
    try {
      commits.push_back(found->take(value));
    } catch (const UsageError& why) {
      const std::string detail = why.what();
      throw UsageError(concat("[", owner_, "] ", key, "=", value, " is not allowed",
                              detail.empty() ? "" : ": ", detail, "; allowed: ", key, "=<",
                              found->allowed, ">"));
    }
  }
  for (const auto& commit : commits) commit();
}

std::string OptionTable::text() const {
  std::vector<std::string> pieces;
  for (const Key& key : keys_) pieces.push_back(concat(key.name, "=", key.show()));
  return join(pieces, ",");
}

std::string OptionTable::allowed() const {
  std::vector<std::string> pieces;
  for (const Key& key : keys_) pieces.push_back(concat(key.name, "=<", key.allowed, ">"));
  return join(pieces);
}

}  // namespace scalecom::core
