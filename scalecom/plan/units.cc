#include "scalecom/plan/units.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <span>
#include <string_view>

#include "scalecom/core/error.h"
#include "scalecom/core/text.h"

namespace scalecom::plan {
namespace {

struct Unit {
  std::string_view name;
  double size;
};

constexpr std::array kSeconds{Unit{"s", 1}, Unit{"ms", 1e-3}, Unit{"us", 1e-6}, Unit{"ns", 1e-9}};
constexpr std::array kBytes{Unit{"B", 1},         Unit{"kB", 1e3},     Unit{"KB", 1e3},
                            Unit{"MB", 1e6},      Unit{"GB", 1e9},     Unit{"KiB", 1024},
                            Unit{"MiB", 1 << 20}, Unit{"GiB", 1 << 30}};
constexpr std::array kPrefixes{Unit{"", 1},    Unit{"k", 1e3}, Unit{"K", 1e3},
                               Unit{"M", 1e6}, Unit{"G", 1e9}, Unit{"T", 1e12}};
// A second's worth of bits or bytes, behind the prefix.
constexpr std::array kRates{Unit{"bps", 0.125},    Unit{"b/s", 0.125}, Unit{"bit/s", 0.125},
                            Unit{"bits/s", 0.125}, Unit{"bit", 0.125}, Unit{"Bps", 1},
                            Unit{"B/s", 1}};

struct Quantity {
  double number = 0;
  std::string_view unit;
};

// The number in front and the unit behind it; a number of 0 and no unit where it is neither.
Quantity take_apart(std::string_view text) {
  Quantity quantity;
  const auto [end, error] =
      std::from_chars(text.data(), text.data() + text.size(), quantity.number);
  if (error != std::errc() || !std::isfinite(quantity.number)) return {};
  quantity.unit = text.substr(static_cast<std::size_t>(end - text.data()));
  while (quantity.unit.starts_with(' ')) quantity.unit.remove_prefix(1);
  return quantity;
}

double unit_size(std::string_view name, std::span<const Unit> units) {
  for (const Unit& unit : units) {
    if (unit.name == name) return unit.size;
  }
  return 0;
}

double rate_size(std::string_view name) {
  for (const Unit& prefix : kPrefixes) {
    if (!name.starts_with(prefix.name)) continue;
    const double size = unit_size(name.substr(prefix.name.size()), kRates);
    if (size > 0) return prefix.size * size;
  }
  return 0;
}

double checked(const std::string& text, const std::string& what, double unit, bool zero_allowed,
               const char* forms) {
  const auto refuse = [&](const char* why) {
    throw core::UsageError(
        core::concat("[plan] ", what, " is '", text, "'", why, "; write it as ", forms));
  };
  if (unit == 0) refuse(", which has no unit that is known");
  const double value = take_apart(text).number * unit;
  if (!std::isfinite(value)) refuse(", which is too large");
  if (value < 0 || (value == 0 && !zero_allowed)) {
    refuse(zero_allowed ? ", which is under 0" : ", which is not over 0");
  }
  return value;
}

double three_digits(double value) {
  const double digits = std::pow(10, 2 - std::floor(std::log10(std::max(value, 1e-9))));
  return std::round(value * digits) / digits;
}

std::string rate_text(double value, const char* unit) {
  static constexpr std::array kNames{"", "k", "M", "G", "T"};
  std::size_t prefix = 0;
  for (; three_digits(value) >= 1000 && prefix + 1 < kNames.size(); ++prefix) value /= 1000;
  return core::concat(three_digits(value), " ", kNames[prefix], unit);
}

}  // namespace

double parse_bandwidth(const std::string& text, const std::string& what) {
  return checked(text, what, rate_size(take_apart(text).unit), false,
                 "10Gbit/s, 10Gb/s, 10Gbps or, in bytes, 1.25GB/s");
}

double parse_seconds(const std::string& text, const std::string& what) {
  return checked(text, what, unit_size(take_apart(text).unit, kSeconds), true, "80ms, 5us or 0.5s");
}

double parse_bytes(const std::string& text, const std::string& what) {
  return checked(text, what, unit_size(take_apart(text).unit, kBytes), false, "25MB, 1MiB or 64kB");
}

std::string byte_rate_text(double bytes_per_second) {
  return rate_text(bytes_per_second, "B/s");
}

std::string bandwidth_text(double bytes_per_second) {
  return core::concat(byte_rate_text(bytes_per_second), " (",
                      rate_text(8 * bytes_per_second, "bit/s"), ")");
}

}  // namespace scalecom::plan
