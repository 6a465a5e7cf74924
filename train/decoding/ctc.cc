#include "train/decoding/ctc.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

namespace train::decoding {
namespace {

constexpr double kNever = -std::numeric_limits<double>::infinity();

double log_add(double a, double b) {
  if (a < b) std::swap(a, b);
  return b == kNever ? a : a + std::log1p(std::exp(b - a));
}

/// Symbols that an answer may begin with, and how probable that is, by how the last step ended.
struct Beginning {
  std::vector<int> symbols;
  double silent = kNever;
  double sounding = kNever;  ///< with its last symbol
  double either = kNever;

  int last() const { return symbols.empty() ? 0 : symbols.back(); }
  bool is(const Beginning& shorter, int symbol) const {
    return last() == symbol && symbols.size() == shorter.symbols.size() + 1 &&
           std::equal(shorter.symbols.begin(), shorter.symbols.end(), symbols.begin());
  }
};

/// What one more step can make of a beginning. Its symbols are only written out if it is kept.
struct Candidate {
  const Beginning* from = nullptr;
  int symbol = 0;  ///< that it adds, or 0
  double silent = kNever;
  double sounding = kNever;
  double either = kNever;

  std::vector<int> symbols() const {
    std::vector<int> all = from->symbols;
    if (symbol != 0) all.push_back(symbol);
    return all;
  }
};

/// Between equals the symbols decide, so that the result is always the same.
bool comes_before(const Candidate& a, const Candidate& b) {
  if (a.either != b.either) return a.either > b.either;
  return a.symbols() < b.symbols();
}

std::vector<Candidate> candidates(const std::vector<Beginning>& beam, const CtcOutput& output,
                                  std::int64_t step) {
  std::vector<Candidate> all;
  for (const Beginning& beginning : beam) {
    const int last = beginning.last();
    const double goes_on = last == 0 ? kNever : beginning.sounding + output.at(step, last);
    all.push_back({&beginning, 0, beginning.either + output.at(step, 0), goes_on});
  }
  for (const Beginning& beginning : beam) {
    for (int symbol = 1; symbol < output.classes; ++symbol) {
      // The same symbol again is another one only after a pause.
      const double before = symbol == beginning.last() ? beginning.silent : beginning.either;
      if (before == kNever) continue;
      const double sounding = before + output.at(step, symbol);
      // Which may be what another beginning already is.
      const auto same = std::ranges::find_if(
          beam, [&](const Beginning& other) { return other.is(beginning, symbol); });
      if (same == beam.end()) {
        all.push_back({&beginning, symbol, kNever, sounding});
      } else {
        Candidate& stays = all[static_cast<std::size_t>(same - beam.begin())];
        stays.sounding = log_add(stays.sounding, sounding);
      }
    }
  }
  for (Candidate& candidate : all) {
    const double either = log_add(candidate.silent, candidate.sounding);
    candidate.either = std::isnan(either) ? kNever : either;  // of a network that has diverged
  }
  return all;
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
  std::vector<Beginning> beam{{{}, 0, kNever, 0}};
  for (std::int64_t step = 0; step < output.steps(); ++step) {
    std::vector<Candidate> best = candidates(beam, output, step);
    const std::size_t kept = std::min(best.size(), static_cast<std::size_t>(width));
    std::ranges::partial_sort(best, best.begin() + static_cast<std::ptrdiff_t>(kept), comes_before);
    std::vector<Beginning> next;
    for (std::size_t i = 0; i < kept; ++i) {
      next.push_back({best[i].symbols(), best[i].silent, best[i].sounding, best[i].either});
    }
    beam = std::move(next);
  }
  return beam.front().symbols;
}

}  // namespace train::decoding
