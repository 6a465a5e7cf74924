#include "scalecom/state/checksum.h"

#include <array>
#include <bit>
#include <cstddef>
#include <cstdio>

#include "scalecom/core/hash.h"

namespace scalecom::state {
namespace {

// Lanes do not wait for one another, so that a block is summed about as fast as it is read.
constexpr std::size_t kLanes = 8;
// The fractional part of the golden ratio, odd: multiplying by it loses nothing.
constexpr std::uint64_t kMultiplier = 0x9e3779b97f4a7c15ULL;

std::uint64_t absorbed(std::uint64_t lane, float value) {
  return std::rotl((lane ^ std::bit_cast<std::uint32_t>(value)) * kMultiplier, 29);
}

}  // namespace

void Checksum::add(std::span<const float> block) {
  std::array<std::uint64_t, kLanes> lanes{1, 2, 3, 4, 5, 6, 7, 8};
  const std::size_t whole = block.size() / kLanes * kLanes;
  for (std::size_t i = 0; i < whole; i += kLanes) {
    for (std::size_t lane = 0; lane < kLanes; ++lane) {
      lanes[lane] = absorbed(lanes[lane], block[i + lane]);
    }
  }
  for (std::size_t i = whole; i < block.size(); ++i) {
    lanes[i - whole] = absorbed(lanes[i - whole], block[i]);
  }
  sum_ = core::combine(sum_, block.size());
  for (const std::uint64_t lane : lanes) sum_ = core::combine(sum_, lane);
}

std::string Checksum::text() const {
  return hex16(sum_);
}

std::string hex16(std::uint64_t value) {
  char digits[17];
  std::snprintf(digits, sizeof digits, "%016llx", static_cast<unsigned long long>(value));
  return digits;
}

}  // namespace scalecom::state
