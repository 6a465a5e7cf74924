#include "scalecom/wire/offsets.h"

#include <algorithm>
#include <bit>
#include <cstring>

namespace scalecom::wire {
namespace {

static_assert(std::endian::native == std::endian::little, "words are stored lowest byte first");

// Collects bits and writes out whole bytes. Between two flushes there is room for 56 bits.
class BitWriter {
 public:
  explicit BitWriter(std::span<std::byte> out) : next_(out.data()), end_(next_ + out.size()) {}

  void put(std::uint64_t value, int bits) {
    pending_ |= value << filled_;
    filled_ += bits;
  }

  void flush() {
    const auto room = std::min<std::ptrdiff_t>(8, end_ - next_);
    std::memcpy(next_, &pending_, static_cast<std::size_t>(room));
    next_ += filled_ / 8;
    pending_ >>= filled_ / 8 * 8;
    filled_ %= 8;
  }

 private:
  std::byte* next_;
  std::byte* end_;
  std::uint64_t pending_ = 0;
  int filled_ = 0;
};

// The reverse: after a refill there are at least 56 bits, or all that is left.
class BitReader {
 public:
  explicit BitReader(std::span<const std::byte> in) : in_(in) {}

  void refill() {
    const std::size_t byte = std::min(at_ / 8, in_.size());
    pending_ = 0;
    std::memcpy(&pending_, in_.data() + byte, std::min<std::size_t>(8, in_.size() - byte));
    pending_ >>= at_ % 8;
  }

  std::uint64_t get(int bits) {
    const std::uint64_t value = pending_ & ((std::uint64_t{1} << bits) - 1);
    pending_ >>= bits;
    at_ += static_cast<std::size_t>(bits);
    return value;
  }

 private:
  std::span<const std::byte> in_;
  std::uint64_t pending_ = 0;
  std::size_t at_ = 0;  // bits read
};

constexpr int kBitsAtOnce = 56;

}  // namespace

void pack(const layout::Cut& cut, std::int64_t first, std::int64_t last,
          const std::uint32_t* positions, std::span<std::byte> out) {
  const int bits = offset_bits(cut.chunk);
  if (bits == 0) return;
  BitWriter writer(out);
  const std::int64_t at_once = kBitsAtOnce / bits;
  const auto chunk = static_cast<std::uint32_t>(cut.chunk);
  auto base = static_cast<std::uint32_t>(first) * chunk;
  const auto pack_items = [&](auto end_of_item) {
    const std::int64_t end = cut.kept_before(last);
    for (std::int64_t item = cut.kept_before(first); item < end;) {
      for (const std::int64_t stop = std::min(end, item + at_once); item < stop; ++item) {
        writer.put(positions[item] - base, bits);
        end_of_item();
      }
      writer.flush();
    }
  };
  if (cut.keep == 1) {
    pack_items([&] { base += chunk; });
  } else {
    std::int64_t left = cut.keep;  // of the chunk under way; the tail is the last
    pack_items([&] {
      if (--left > 0) return;
      base += chunk;
      left = cut.keep;
    });
  }
}

bool unpack(const layout::Cut& cut, std::int64_t first, std::int64_t last,
            std::span<const std::byte> in, std::uint32_t* positions) {
  const int bits = offset_bits(cut.chunk);
  const std::int64_t at_once = bits > 0 ? kBitsAtOnce / bits : kBitsAtOnce;
  const auto chunk = static_cast<std::uint32_t>(cut.chunk);
  const std::int64_t end = cut.kept_before(last);
  BitReader reader(in);
  bool sound = true;
  auto base = static_cast<std::uint32_t>(first) * chunk;
  std::uint32_t least = 0;  // that the next offset may be
  const auto unpack_items = [&](auto end_of_item) {
    for (std::int64_t item = cut.kept_before(first); item < end;) {
      reader.refill();
      for (const std::int64_t stop = std::min(end, item + at_once); item < stop; ++item) {
        const auto offset = static_cast<std::uint32_t>(reader.get(bits));
        sound &= offset >= least && offset < chunk;
        positions[item] = base + offset;
        end_of_item(offset);
      }
    }
  };
  if (cut.keep == 1) {
    unpack_items([&](std::uint32_t /*offset*/) { base += chunk; });
  } else {
    std::int64_t left = cut.keep;
    unpack_items([&](std::uint32_t offset) {
      least = offset + 1;
      if (--left > 0) return;
      base += chunk;
      left = cut.keep;
      least = 0;
    });
  }
  // Only the tail is shorter than a chunk, and its last offset is the highest.
  return sound && (end == cut.kept_before(first) || positions[end - 1] < cut.length);
}

}  // namespace scalecom::wire
