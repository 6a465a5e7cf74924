#pragma once

#include <cstdint>
#include <span>
#include <string>

namespace scalecom::state {

/// Tells one array of floats from another that was damaged on its way: a 64-bit function of all
/// bits, the same on every machine. No protection against intent.
class Checksum {
 public:
  /// The floats that one add() takes; only the last may be given fewer.
  static constexpr std::int64_t kBlock = std::int64_t{1} << 16;

  void add(std::span<const float> block);
  /// 16 hexadecimal digits.
  std::string text() const;

 private:
  std::uint64_t sum_ = 0;
};

/// Sixteen hexadecimal digits.
std::string hex16(std::uint64_t value);

}  // namespace scalecom::state
