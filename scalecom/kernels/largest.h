#pragma once

#include <bit>
#include <cstdint>
#include <vector>

/// The largest of an array of finite fp32 numbers by magnitude, wherever they lie. Positions
/// ascend; among equal magnitudes the lowest positions are kept. These divide their own work among
/// the pool's threads. At most 2^32 - 1 numbers.
namespace scalecom::kernels {

/// Orders as |number| does: the bits without the sign.
constexpr std::int32_t magnitude_key(float number) {
  return std::bit_cast<std::int32_t>(number) & 0x7fffffff;
}

/// The positions of all numbers whose key is `least` or more.
std::vector<std::uint32_t> positions_from(const float* numbers, std::int64_t length,
                                          std::int32_t least);

/// The positions of the `keep` largest; keep is at most `length`.
void select_largest(const float* numbers, std::int64_t length, std::int64_t keep,
                    std::uint32_t* positions);

/// The positions of the `keep` largest among `candidates`, which ascend; keep is at most their
/// number.
std::vector<std::uint32_t> keep_largest(const float* numbers,
                                        const std::vector<std::uint32_t>& candidates,
                                        std::int64_t keep);

/// Every `stride`-th number from `first` on: the key that `keep` of them reach, and no higher one.
/// keep is at most their number.
std::int32_t key_reached(const float* numbers, std::int64_t length, std::int64_t first,
                         std::int64_t stride, std::int64_t keep);

}  // namespace scalecom::kernels
