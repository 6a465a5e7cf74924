#include "scalecom/methods/scalecom/options.h"

#include <array>
#include <charconv>
#include <limits>

#include "scalecom/core/error.h"
#include "scalecom/core/text.h"
#include "scalecom/methods/rate_options.h"

namespace scalecom::methods::scalecom {
namespace {

using Kind = layout::Selection::Kind;

constexpr double kMostGain = 1000;
constexpr const char* kSelections = "chunk | chunk:C | exact | random";

layout::Selection parse_selection(const std::string& text) {
  if (text == "chunk") return {Kind::kLargest, 0};
  if (text == "exact") return {Kind::kExact, 0};
  if (text == "random") return {Kind::kRandom, 0};
  const std::string prefix = "chunk:";
  if (text.starts_with(prefix)) {
    std::int64_t chunk = 0;
    const char* end = text.data() + text.size();
    const auto result = std::from_chars(text.data() + prefix.size(), end, chunk);
    if (result.ec == std::errc{} && result.ptr == end && chunk >= 1 && chunk <= (1LL << 31)) {
      return {Kind::kTop, chunk};
    }
    throw core::UsageError("C is a whole number of elements from 1 on");
  }
  throw core::UsageError("");
}

std::string selection_text(const layout::Selection& selection) {
  switch (selection.kind) {
    case Kind::kLargest:
      return "chunk";
    case Kind::kTop:
      return core::concat("chunk:", selection.chunk);
    case Kind::kExact:
      return "exact";
    case Kind::kRandom:
      return "random";
  }
  return "?";
}

}  // namespace

Options::Options(Feedback feedback) : feedback_(feedback) {
  if (feedback == Feedback::kWeighted) beta = 1;
}

const char* Options::name() const {
  return feedback_ == Feedback::kFilter ? "scalecom" : "weighted";
}

core::OptionTable Options::table() {
  using Bound = core::OptionTable::Bound;
  core::OptionTable table(name());
  table.number("rate", &rate, 1, Bound::kClosed, 1e9);
  const bool filters = feedback_ == Feedback::kFilter;
  if (filters) {
    table.number("beta", &beta, 0, Bound::kOpen, 1);
  } else {
    table.number("a", &gain, 0, Bound::kOpen, kMostGain);
  }
  table.custom(
      "select", kSelections,
      [this](const std::string& text) -> std::function<void()> {
        return [this, selection = parse_selection(text)] { select = selection; };
      },
      [this] { return selection_text(select); });
  table.number(filters ? "decay" : "b", &decay, 0, Bound::kOpen, 1);
  table.choice("leaders", &leaders, {"cyclic", "sharded"});
  table.choice("values", &values, {"fp32", "bf16", "fp16"});
  table.integer("warmup", &warmup, 0);
  declare_rates(table, &rates);
  table.integer("seed", &seed, 0);
  nonfinite.declare(table);
  table.choice("check", &check, {"none", "conserve"});
  return table;
}

void Options::read(const core::OptionString& options) {
  Options changed = *this;
  changed.table().read(options.settings);
  const bool one_set = changed.select.kind == Kind::kExact || changed.select.kind == Kind::kRandom;
  if (changed.leaders == kSharded && one_set) {
    throw core::UsageError(core::concat(
        "[", name(), "] leaders=sharded divides the chunks among the ranks, and select=",
        selection_text(changed.select), " has none to divide; allowed: select=chunk or chunk:C"));
  }
  // The kernels compute in fp32, where a smaller number is 0 or loses digits.
  constexpr auto kLeast = std::numeric_limits<float>::min();
  if (changed.filter().beta < kLeast || changed.filter().decay < kLeast ||
      static_cast<float>(changed.gain) < kLeast) {
    throw core::UsageError(core::concat(
        "[", name(), "] ", feedback_ == Feedback::kFilter ? "beta and decay" : "a and b",
        " are at least ", core::shortest(kLeast), ", the least normal fp32 number"));
  }
  changed.rates.rate = changed.rate;
  *this = changed;
}

std::string Options::text() const {
  Options copy = *this;
  return copy.table().text();
}

std::string Options::allowed(Feedback feedback) {
  Options defaults(feedback);
  return defaults.table().allowed();
}

core::DType Options::value_type() const {
  constexpr std::array kTypes = {core::DType::kFloat32, core::DType::kBFloat16,
                                 core::DType::kFloat16};
  return kTypes[static_cast<std::size_t>(values)];
}

}  // namespace scalecom::methods::scalecom
