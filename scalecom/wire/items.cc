#include "scalecom/wire/items.h"

#include <algorithm>
#include <cstring>

#include "scalecom/wire/offsets.h"

namespace scalecom::wire {
namespace {

constexpr std::int64_t kValueBytes = sizeof(float);

// A tensor is one chunk, of which `count` entries are kept.
layout::Cut whole(const Run& run) {
  return {run.length, run.length, run.count, 0};
}

std::int64_t value_bytes(std::span<const Run> runs) {
  std::int64_t items = 0;
  for (const Run& run : runs) items += run.count;
  return items * kValueBytes;
}

// visit(run, index of its first item, its bytes) for every tensor that has items.
template <typename Bytes, typename Visit>
void for_each_run(std::span<const Run> runs, Bytes message, const Visit& visit) {
  auto begin = static_cast<std::size_t>(value_bytes(runs));
  std::int64_t item = 0;
  for (const Run& run : runs) {
    if (run.count == 0) continue;
    const auto size = static_cast<std::size_t>(packed_bytes(run.count, offset_bits(run.length)));
    visit(run, item, message.subspan(begin, size));
    begin += size;
    item += run.count;
  }
}

}  // namespace

std::int64_t items_bytes(std::span<const Run> runs) {
  std::int64_t bytes = value_bytes(runs);
  for (const Run& run : runs) bytes += packed_bytes(run.count, offset_bits(run.length));
  return (bytes + kValueBytes - 1) / kValueBytes * kValueBytes;
}

void pack_items(std::span<const Run> runs, const std::uint32_t* positions, const float* values,
                std::span<std::byte> out) {
  if (out.empty()) return;
  // The spare bytes of the last word are 0.
  std::fill(out.end() - kValueBytes, out.end(), std::byte{});
  std::memcpy(out.data(), values, static_cast<std::size_t>(value_bytes(runs)));
  for_each_run(runs, out, [&](const Run& run, std::int64_t item, std::span<std::byte> bytes) {
    pack(whole(run), 0, 1, positions + item, bytes);
  });
}

bool unpack_items(std::span<const Run> runs, std::span<const std::byte> in,
                  std::uint32_t* positions, float* values) {
  if (in.empty()) return true;
  std::memcpy(values, in.data(), static_cast<std::size_t>(value_bytes(runs)));
  bool fits = true;
  for_each_run(runs, in, [&](const Run& run, std::int64_t item, std::span<const std::byte> bytes) {
    fits = fits && unpack(whole(run), 0, 1, bytes, positions + item);
  });
  return fits;
}

}  // namespace scalecom::wire
