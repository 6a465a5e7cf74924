#include "tests/methods/history/history.h"

#include <algorithm>
#include <array>
#include <random>

namespace scalecom::methods::testing {
namespace {

constexpr std::array kNames = {"step",    "skipped step", "step that is not finite",
                               "restore", "rescale",      "other beta",
                               "save",    "fault"};
// Most of a life is steps.
constexpr std::array kWeights = {12.0, 2.0, 2.0, 1.0, 1.0, 1.0, 1.0, 1.0};
constexpr int kMostQuestions = 400;

}  // namespace

std::ostream& operator<<(std::ostream& out, const Action& action) {
  return out << kNames.at(static_cast<std::size_t>(action.kind)) << " (" << action.seed << ")";
}

History draw_history(std::uint32_t seed, int length) {
  std::mt19937 random(seed);
  std::discrete_distribution<int> kinds(kWeights.begin(), kWeights.end());
  History history;
  for (int i = 0; i < length; ++i) {
    const auto kind = static_cast<Action::Kind>(kinds(random));
    history.push_back({kind, static_cast<std::uint32_t>(random())});
  }
  return history;
}

History shortest(History history, const std::function<bool(const History&)>& fails) {
  int questions = 0;
  for (std::size_t piece = std::max<std::size_t>(1, history.size() / 2); piece > 0; piece /= 2) {
    for (std::size_t at = 0; at < history.size() && questions < kMostQuestions;) {
      History without = history;
      const auto begin = without.begin() + static_cast<std::ptrdiff_t>(at);
      const auto count = static_cast<std::ptrdiff_t>(std::min(piece, history.size() - at));
      without.erase(begin, begin + count);
      ++questions;
      if (fails(without)) {
        history = std::move(without);
      } else {
        at += piece;
      }
    }
  }
  return history;
}

}  // namespace scalecom::methods::testing
