#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "scalecom/kernels/bins.h"
#include "scalecom/layout/bins.h"

/// Entries that are all +s or -s, some of every bin of a tensor. Each is a word, from the lowest
/// bit up: whether it is the last of its bin, whether it is negative, and its offset in the bin. A
/// word has 8 bits where a bin has under 64 elements, else 16. A bin without entries is a word of
/// its own whose offset is all ones, which no entry has, and whose other bits are 0. Words of 16
/// bits lie lowest byte first.
namespace scalecom::wire {

/// Of a bin, so that its offsets leave one number free in 14 bits.
constexpr std::int64_t kLargestBin = (1 << 14) - 1;

constexpr std::int64_t word_bytes(std::int64_t bin) {
  return bin < 64 ? 1 : 2;
}

/// Appends the words of the tensor's entries, which ascend by position.
void pack(const layout::Bins& bins, std::span<const kernels::Ternary> entries,
          std::vector<std::byte>& out);

/// The reverse, appending to `entries`. Returns false where the bytes cannot have come from pack():
/// too few or too many, an offset outside its bin, or offsets that do not ascend.
[[nodiscard]] bool unpack(const layout::Bins& bins, std::span<const std::byte> in,
                          std::vector<kernels::Ternary>& entries);

}  // namespace scalecom::wire
