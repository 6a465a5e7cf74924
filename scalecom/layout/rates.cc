#include "scalecom/layout/rates.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <string_view>

#include "scalecom/core/error.h"
#include "scalecom/core/text.h"
#include "scalecom/layout/flops.h"

namespace scalecom::layout {
namespace {

using core::concat;
using core::UsageError;
using Kind = RatePolicy::Kind;

constexpr const char* kAllowed =
    "uniform, flops, paper, or patterns with a rate from 1 on or 'dense', as in "
    "fc*:400;embed*:dense";

// One character, which in UTF-8 may be several bytes.
std::size_t after_character(std::string_view text, std::size_t at) {
  for (++at; at < text.size() && (static_cast<unsigned char>(text[at]) & 0xc0U) == 0x80U;) ++at;
  return at;
}

bool matches(std::string_view pattern, std::string_view name) {
  std::size_t p = 0;
  std::size_t n = 0;
  std::size_t star = std::string_view::npos;  // the last * seen, and how far it reaches by now
  std::size_t reach = 0;
  while (n < name.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      reach = n;
    } else if (p < pattern.size() && pattern[p] == '?') {
      ++p;
      n = after_character(name, n);
    } else if (p < pattern.size() && pattern[p] == name[n]) {
      ++p;
      ++n;
    } else if (star != std::string_view::npos) {
      p = star + 1;
      n = ++reach;
    } else {
      return false;
    }
  }
  while (p < pattern.size() && pattern[p] == '*') ++p;
  return p == pattern.size();
}

bool is_rate(double rate) {
  return std::isfinite(rate) && rate >= kDense;
}

std::pair<std::string, double> parse_pattern(const std::string& piece, const std::string& text) {
  const std::size_t colon = piece.rfind(':');
  if (colon == std::string::npos || colon == 0) {
    throw UsageError(
        concat("[rates] '", piece, "' in '", text, "' is not pattern:rate; allowed: ", kAllowed));
  }
  const std::string number = piece.substr(colon + 1);
  double rate = kDense;
  if (number != "dense") {
    const char* end = number.data() + number.size();
    const auto result = std::from_chars(number.data(), end, rate);
    if (result.ec != std::errc{} || result.ptr != end || !is_rate(rate)) {
      throw UsageError(
          concat("[rates] '", number, "' in '", text, "' is not a rate; allowed: ", kAllowed));
    }
  }
  return {piece.substr(0, colon), rate};
}

double paper_rate(double flops_per_gradient) {
  if (flops_per_gradient >= 196) return 25;
  return flops_per_gradient >= 128 ? 50 : 400;
}

double known_flops(const Tensor& tensor, const RatePolicy& policy) {
  if (std::isfinite(tensor.flops_per_gradient) && tensor.flops_per_gradient > 0) {
    return tensor.flops_per_gradient;
  }
  throw UsageError(concat("[rates] rates=", policy.rates_text(),
                          " needs the FLOPs per gradient of '", tensor.name,
                          "', which are not known; allowed without them: uniform, "
                          "patterns"));
}

const double* pattern_rate(const Tensor& tensor, const RatePolicy& policy) {
  if (policy.kind != Kind::kPattern) return nullptr;
  for (const auto& [pattern, rate] : policy.patterns) {
    if (matches(pattern, tensor.name)) return &rate;
  }
  return nullptr;
}

// A pattern for nothing is a misspelt one.
void check_patterns(std::span<const Tensor> model, const RatePolicy& policy) {
  constexpr std::size_t kShown = 5;
  for (const auto& [pattern, rate] : policy.patterns) {
    const auto is_named = [&pattern = pattern](const Tensor& one) {
      return matches(pattern, one.name);
    };
    if (model.empty() || std::any_of(model.begin(), model.end(), is_named)) continue;
    std::vector<std::string> names;
    for (const Tensor& tensor : model.first(std::min(kShown, model.size()))) {
      names.push_back(tensor.name);
    }
    if (model.size() > kShown) names.push_back("...");
    throw UsageError(
        concat("[rates] no tensor of the model is a '", pattern, "'; it has ", core::join(names)));
  }
}

// A rate for every tensor, before those that are too short become dense.
std::vector<double> wanted_rates(std::span<const Tensor> model, const RatePolicy& policy) {
  std::vector<double> rates(model.size(), kDense);
  std::vector<std::size_t> by_flops;
  std::vector<Share> shares;
  bool first = true;
  for (std::size_t i = 0; i < model.size(); ++i) {
    const Tensor& tensor = model[i];
    if (tensor.shape.size() < 2) continue;
    const bool spared = std::exchange(first, false) && policy.first_layer_dense;
    if (const double* rate = pattern_rate(tensor, policy)) {
      rates[i] = *rate;
    } else if (spared) {
      continue;
    } else if (policy.kind == Kind::kPaper) {
      rates[i] = paper_rate(known_flops(tensor, policy));
    } else if (policy.kind == Kind::kFlops) {
      by_flops.push_back(i);
      shares.push_back({tensor.elements(), known_flops(tensor, policy)});
    } else {
      rates[i] = policy.rate;
    }
  }
  const std::vector<std::int64_t> solved = flops_rates(shares, policy.rate);
  for (std::size_t i = 0; i < solved.size(); ++i) {
    rates[by_flops[i]] = static_cast<double>(solved[i]);
  }
  return rates;
}

}  // namespace

void RatePolicy::parse_rates(const std::string& text) {
  Kind parsed = Kind::kPattern;
  std::vector<std::pair<std::string, double>> parsed_patterns;
  if (text == "uniform") {
    parsed = Kind::kUniform;
  } else if (text == "flops") {
    parsed = Kind::kFlops;
  } else if (text == "paper") {
    parsed = Kind::kPaper;
  } else {
    for (const std::string& piece : core::split(text, ';')) {
      parsed_patterns.push_back(parse_pattern(piece, text));
    }
  }
  kind = parsed;
  patterns = std::move(parsed_patterns);
}

std::string RatePolicy::rates_text() const {
  switch (kind) {
    case Kind::kUniform:
      return "uniform";
    case Kind::kFlops:
      return "flops";
    case Kind::kPaper:
      return "paper";
    case Kind::kPattern:
      break;
  }
  std::vector<std::string> pieces;
  for (const auto& [pattern, rate] : patterns) {
    pieces.push_back(concat(pattern, ":", rate <= kDense ? "dense" : core::shortest(rate)));
  }
  return core::join(pieces, ";");
}

void RatePolicy::check() const {
  if (!is_rate(rate)) {
    throw UsageError(
        concat("[rates] the rate is ", core::shortest(rate), "; allowed: a number from 1 on"));
  }
  if (kind == Kind::kFlops && rate > static_cast<double>(kLargestFlopsRate)) {
    throw UsageError(concat("[rates] the rate is ", core::shortest(rate),
                            "; rates=flops keeps every tensor within [1, ", kLargestFlopsRate,
                            "], so it allows no more for the whole"));
  }
  for (const auto& [pattern, its_rate] : patterns) {
    if (!is_rate(its_rate)) {
      throw UsageError(concat("[rates] pattern '", pattern, "' has the rate ",
                              core::shortest(its_rate), "; allowed: a number from 1 on"));
    }
  }
}

RatePlan::RatePlan(std::span<const Tensor> model, const RatePolicy& policy) {
  policy.check();
  check_patterns(model, policy);
  const std::vector<double> wanted = wanted_rates(model, policy);
  for (std::size_t i = 0; i < model.size(); ++i) {
    const std::int64_t elements = model[i].elements();
    const double rate = static_cast<double>(elements) < wanted[i] ? kDense : wanted[i];
    if (!entries_.emplace(model[i].name, Entry{rate, elements}).second) {
      throw UsageError(
          concat("[rates] the name '", model[i].name, "' stands twice; names are unique"));
    }
  }
}

const RatePlan::Entry& RatePlan::entry_of(const std::string& name) const {
  const auto found = entries_.find(name);
  if (found == entries_.end()) {
    throw UsageError(concat("[rates] '", name, "' is not a tensor of the model, which has ",
                            entries_.size(), " others"));
  }
  return found->second;
}

double RatePlan::rate_of(const std::string& name) const {
  return entry_of(name).rate;
}

Layout RatePlan::bucket(std::span<const Tensor> tensors) const {
  std::vector<Slice> slices;
  slices.reserve(tensors.size());
  std::int64_t offset = 0;
  for (const Tensor& tensor : tensors) {
    const Entry& entry = entry_of(tensor.name);
    if (tensor.elements() != entry.elements) {
      throw UsageError(concat("[rates] '", tensor.name, "' has ", tensor.elements(),
                              " elements in the bucket and ", entry.elements, " in the model"));
    }
    slices.push_back({tensor.name, offset, entry.elements, entry.rate, tensor.shape});
    if (__builtin_add_overflow(offset, entry.elements, &offset)) {
      throw UsageError("[rates] the bucket has more than 2^63 - 1 elements");
    }
  }
  return Layout(std::move(slices));
}

Layout make_layout(std::span<const Tensor> model, const RatePolicy& policy) {
  return RatePlan(model, policy).bucket(model);
}

}  // namespace scalecom::layout
