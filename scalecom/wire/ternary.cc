#include "scalecom/wire/ternary.h"

#include <algorithm>

namespace scalecom::wire {
namespace {

using kernels::Ternary;

constexpr std::uint32_t kLast = 1;
constexpr std::uint32_t kNegative = 2;
constexpr int kOffsetShift = 2;

// A bin without entries.
constexpr std::uint32_t empty_word(std::int64_t bytes) {
  return bytes == 1 ? 0xfcU : 0xfffcU;
}

void append(std::uint32_t word, std::int64_t bytes, std::vector<std::byte>& out) {
  out.push_back(static_cast<std::byte>(word & 0xffU));
  if (bytes == 2) out.push_back(static_cast<std::byte>(word >> 8));
}

std::uint32_t word_at(std::span<const std::byte> in, std::size_t at, std::int64_t bytes) {
  const auto low = std::to_integer<std::uint32_t>(in[at]);
  return bytes == 1 ? low : low | std::to_integer<std::uint32_t>(in[at + 1]) << 8;
}

}  // namespace

void pack(const layout::Bins& bins, std::span<const Ternary> entries, std::vector<std::byte>& out) {
  const std::int64_t bytes = word_bytes(bins.bin);
  std::size_t next = 0;
  for (std::int64_t begin = 0; begin < bins.length; begin += bins.bin) {
    const std::int64_t end = begin + bins.bin;
    if (next == entries.size() || entries[next].position >= end) {
      append(empty_word(bytes), bytes, out);
      continue;
    }
    for (bool last = false; !last; ++next) {
      const Ternary& entry = entries[next];
      last = next + 1 == entries.size() || entries[next + 1].position >= end;
      const auto offset = static_cast<std::uint32_t>(entry.position - begin);
      append(offset << kOffsetShift | (entry.negative ? kNegative : 0) | (last ? kLast : 0), bytes,
             out);
    }
  }
}

bool unpack(const layout::Bins& bins, std::span<const std::byte> in,
            std::vector<Ternary>& entries) {
  const std::int64_t bytes = word_bytes(bins.bin);
  if (in.size() % static_cast<std::size_t>(bytes) != 0) return false;
  std::size_t at = 0;
  for (std::int64_t begin = 0; begin < bins.length; begin += bins.bin) {
    const std::int64_t length = std::min(bins.bin, bins.length - begin);
    std::int64_t least = 0;  // that the next offset may be
    for (bool last = false; !last; at += static_cast<std::size_t>(bytes)) {
      if (at == in.size()) return false;
      const std::uint32_t word = word_at(in, at, bytes);
      if (word == empty_word(bytes) && least == 0) {
        last = true;
        continue;
      }
      const std::int64_t offset = word >> kOffsetShift;
      if (offset < least || offset >= length) return false;
      entries.push_back({static_cast<std::uint32_t>(begin + offset), (word & kNegative) != 0});
      least = offset + 1;
      last = (word & kLast) != 0;
    }
  }
  return at == in.size();
}

}  // namespace scalecom::wire
