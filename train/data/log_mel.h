#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace train::data {

/// The logarithm of a sound's energy, in bands that are as wide as the ear's, frame by frame: what
/// recognisers of speech are given.
class LogMel {
 public:
  struct Options {
    std::uint32_t rate = 8000;  ///< samples a second
    int window = 200;           ///< samples of a frame
    int hop = 80;               ///< samples from one frame to the next
    int transform = 256;        ///< a power of two, and at least `window`
    int bands = 40;             ///< over all frequencies up to half of the rate
  };

  explicit LogMel(const Options& options);

  int bands() const { return options_.bands; }
  /// Frames that lie within so many samples; a sound shorter than one has one.
  std::int64_t frames(std::int64_t samples) const;
  /// What every frame of silence holds, in every band.
  static float silence();

  /// A frame after the other, `bands` numbers each.
  std::vector<float> operator()(std::span<const std::int16_t> samples) const;

 private:
  struct Band {
    int first = 0;  ///< frequency of the transform
    std::vector<float> weights;
  };

  Options options_;
  std::vector<float> window_;
  std::vector<Band> bands_;
};

}  // namespace train::data
