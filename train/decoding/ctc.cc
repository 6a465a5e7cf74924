#include "train/decoding/ctc.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <utility>

namespace train::decoding {
namespace {

constexpr double kNever = -std::numeric_limits<double>::infinity();

double log_add(double a, double b) {
  if (a < b) std::swap(a, b);
  return b == kNever ? a : a + std::log1p(std::exp(b - a));
}

/// How probable a beginning is, by how its last step ended.
struct Standing {
  double silent = kNever;
  double sounding = kNever;  ///< with its last symbol
  double either() const { return log_add(silent, sounding); }
};

using Beginnings = std::map<std::vector<int>, Standing>;

/// All that one more step can make of a beginning.
void extend(const std::vector<int>& symbols, const Standing& standing, const CtcOutput& output,
            std::int64_t step, Beginnings& next) {
  Standing& same = next[symbols];
  same.silent = log_add(same.silent, standing.either() + output.at(step, 0));
  const int last = symbols.empty() ? 0 : symbols.back();
  if (last != 0) same.sounding = log_add(same.sounding, standing.sounding + output.at(step, last));
  for (int symbol = 1; symbol < output.classes; ++symbol) {
    // The same symbol again is another one only after a pause.
    const double before = symbol == last ? standing.silent : standing.either();
    if (before == kNever) continue;
    std::vector<int> longer = symbols;
    longer.push_back(symbol);
    Standing& more = next[longer];
    more.sounding = log_add(more.sounding, before + output.at(step, symbol));
  }
}

}  // namespace

std::vector<int> decode_greedily(const CtcOutput& output) {
  std::vector<int> symbols;
  int last = 0;
  for (std::int64_t step = 0; step < output.steps(); ++step) {
    int best = 0;
    for (int label = 1; label < output.classes; ++label) {
      if (output.at(step, label) > output.at(step, best)) best = label;
    }
    if (best != 0 && best != last) symbols.push_back(best);
    last = best;
  }
  return symbols;
}

std::vector<int> decode_by_beam(const CtcOutput& output, int width) {
  std::vector<std::pair<std::vector<int>, Standing>> beam{{{}, {0, kNever}}};
  for (std::int64_t step = 0; step < output.steps(); ++step) {
    Beginnings next;
    for (const auto& [symbols, standing] : beam) extend(symbols, standing, output, step, next);
    beam.assign(next.begin(), next.end());
    // The map's order decides between equals, so that the result is always the same.
    std::stable_sort(beam.begin(), beam.end(), [](const auto& a, const auto& b) {
      return a.second.either() > b.second.either();
    });
    if (beam.size() > static_cast<std::size_t>(width)) {
      beam.resize(static_cast<std::size_t>(width));
    }
  }
  return beam.front().first;
}

}  // namespace train::decoding
