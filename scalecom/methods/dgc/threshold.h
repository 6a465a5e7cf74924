#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace scalecom::methods::dgc {

/// An array of finite fp32 numbers, wherever it lies; what select_by_sample() asks of it is that of
/// kernels/largest.h.
class Numbers {
 public:
  virtual ~Numbers() = default;
  virtual std::int64_t length() const = 0;
  virtual std::int32_t key_reached(std::int64_t first, std::int64_t stride, std::int64_t keep) = 0;
  virtual std::vector<std::uint32_t> positions_from(std::int32_t least) = 0;
  virtual std::vector<std::uint32_t> keep_largest(const std::vector<std::uint32_t>& candidates,
                                                  std::int64_t keep) = 0;
};

/// The positions, ascending, of about `keep` = length / rate of the largest magnitudes: those from
/// a threshold on that a sample gives. From 0.8 to 1.3 times as many, but for arrays that ten lower
/// thresholds do not serve; `draw` decides where the sample begins.
std::vector<std::uint32_t> select_by_sample(Numbers& numbers, double rate, std::int64_t keep,
                                            std::uint64_t draw);

/// The draw of a tensor in a step.
std::uint64_t sample_draw(const std::string& tensor, std::int64_t step);

}  // namespace scalecom::methods::dgc
