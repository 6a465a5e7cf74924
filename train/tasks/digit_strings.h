#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "train/data/fsdd.h"
#include "train/data/log_mel.h"

namespace train::tasks {

/// A spoken digit among the frames of all.
struct SpokenDigit {
  int digit = 0;
  int speaker = 0;
  std::int32_t first = 0;  ///< frame
  std::int32_t frames = 0;
};

/// The frames of recordings, and where each recording lies. Frame 0 is silence.
class DigitFrames {
 public:
  explicit DigitFrames(const data::LogMel& features);

  /// Returns the place of each.
  std::vector<SpokenDigit> add(std::span<const data::Recording> recordings);
  /// Gives every band a mean of 0 and a deviation of 1 over `digits`.
  void normalise(std::span<const SpokenDigit> digits);
  /// A frame after the other.
  const std::vector<float>& values() const { return values_; }

 private:
  const data::LogMel& features_;
  std::vector<float> values_;
};

/// Joins digits of one speaker to strings that fit a window, with pauses between them. What comes
/// out is a function of the arguments alone.
class DigitStrings {
 public:
  struct Options {
    std::int32_t window = 384;  ///< frames
    std::int32_t longest_pause = 8;
    int fewest = 3;  ///< digits of a string; fewer where no more fit
    int most = 7;
  };

  /// Every digit fits the window.
  DigitStrings(std::vector<SpokenDigit> digits, const Options& options);

  std::int64_t size() const { return static_cast<std::int64_t>(digits_.size()); }

  struct String {
    std::vector<int> digits;
    std::vector<std::int32_t> frames;  ///< indices, as many as the window has
  };
  /// One that begins with the digit `first`; the rest is drawn from `noise`.
  String compose(std::int64_t first, std::uint64_t noise) const;

 private:
  std::vector<SpokenDigit> digits_;
  std::vector<std::vector<std::size_t>> by_speaker_;
  Options options_;
};

}  // namespace train::tasks
