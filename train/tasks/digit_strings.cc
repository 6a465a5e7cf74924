#include "train/tasks/digit_strings.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "scalecom/core/hash.h"

namespace train::tasks {
namespace {

/// Numbers in a row, of which each is a function of the seed and its place.
class Draw {
 public:
  explicit Draw(std::uint64_t seed) : seed_(seed) {}
  /// Below `end`.
  std::size_t below(std::size_t end) { return scalecom::core::combine(seed_, place_++) % end; }

 private:
  std::uint64_t seed_;
  std::uint64_t place_ = 0;
};

}  // namespace

DigitFrames::DigitFrames(const data::LogMel& features)
    : features_(features),
      values_(static_cast<std::size_t>(features.bands()), data::LogMel::silence()) {}

std::vector<SpokenDigit> DigitFrames::add(std::span<const data::Recording> recordings) {
  std::vector<SpokenDigit> digits;
  const auto bands = static_cast<std::size_t>(features_.bands());
  for (const data::Recording& recording : recordings) {
    const std::vector<float> frames = features_(recording.samples);
    digits.push_back({recording.digit, recording.speaker,
                      static_cast<std::int32_t>(values_.size() / bands),
                      static_cast<std::int32_t>(frames.size() / bands)});
    values_.insert(values_.end(), frames.begin(), frames.end());
  }
  return digits;
}

void DigitFrames::normalise(std::span<const SpokenDigit> digits) {
  const auto bands = static_cast<std::size_t>(features_.bands());
  for (std::size_t band = 0; band < bands; ++band) {
    double count = 0;
    double sum = 0;
    double squares = 0;
    for (const SpokenDigit& digit : digits) {
      for (std::int32_t f = digit.first; f < digit.first + digit.frames; ++f) {
        const double value = values_[static_cast<std::size_t>(f) * bands + band];
        count += 1;
        sum += value;
        squares += value * value;
      }
    }
    const double mean = sum / count;
    const double deviation = std::sqrt(std::max(squares / count - mean * mean, 1e-12));
    for (std::size_t i = band; i < values_.size(); i += bands) {
      values_[i] = static_cast<float>((values_[i] - mean) / deviation);
    }
  }
}

DigitStrings::DigitStrings(std::vector<SpokenDigit> digits, const Options& options)
    : digits_(std::move(digits)), options_(options) {
  for (std::size_t i = 0; i < digits_.size(); ++i) {
    const auto speaker = static_cast<std::size_t>(digits_[i].speaker);
    if (speaker >= by_speaker_.size()) by_speaker_.resize(speaker + 1);
    by_speaker_[speaker].push_back(i);
  }
}

DigitStrings::String DigitStrings::compose(std::int64_t first, std::uint64_t noise) const {
  Draw draw(noise);
  const auto window = static_cast<std::size_t>(options_.window);
  const auto range = static_cast<std::size_t>(options_.most - options_.fewest + 1);
  const std::size_t count = static_cast<std::size_t>(options_.fewest) + draw.below(range);
  String string;
  const SpokenDigit* next = &digits_[static_cast<std::size_t>(first)];
  const auto& others = by_speaker_[static_cast<std::size_t>(next->speaker)];
  while (string.digits.size() < count) {
    const std::size_t pause = draw.below(static_cast<std::size_t>(options_.longest_pause) + 1);
    // The first always fits.
    const std::size_t before = string.frames.size() + (string.digits.empty() ? 0 : pause);
    if (before + static_cast<std::size_t>(next->frames) > window) break;
    string.frames.resize(before);
    string.frames.resize(before + static_cast<std::size_t>(next->frames));
    std::iota(string.frames.begin() + static_cast<std::ptrdiff_t>(before), string.frames.end(),
              next->first);
    string.digits.push_back(next->digit);
    next = &digits_[others[draw.below(others.size())]];
  }
  string.frames.resize(window);
  return string;
}

}  // namespace train::tasks
