#include "train/similarity/flat_memory.h"

#include <algorithm>
#include <map>
#include <string>

namespace train::similarity {

namespace layout = scalecom::layout;

FlatMemory::FlatMemory(const layout::Layout& layout,
                       std::span<const scalecom::methods::NamedMemory> memories) {
  std::map<std::string, std::int64_t> offsets;
  for (const layout::Slice& slice : layout.slices()) offsets.emplace(slice.name, slice.offset);
  for (const auto& memory : memories) {
    auto slice = offsets.find(memory.name);
    std::int64_t first = 0;
    if (slice == offsets.end()) {
      const auto part = layout::parse_part_key(memory.name);
      if (!part) continue;
      slice = offsets.find(part->name);
      first = part->first;
    }
    if (slice == offsets.end()) continue;
    pieces_.push_back({slice->second + first, memory.values});
    elements_ += static_cast<std::int64_t>(memory.values.size());
  }
}

void FlatMemory::copy(std::int64_t begin, std::span<float> out) const {
  std::fill(out.begin(), out.end(), 0.0F);
  const std::int64_t end = begin + static_cast<std::int64_t>(out.size());
  for (const Piece& piece : pieces_) {
    const std::int64_t from = std::max(begin, piece.offset);
    const std::int64_t to =
        std::min(end, piece.offset + static_cast<std::int64_t>(piece.values.size()));
    if (from >= to) continue;
    std::copy_n(piece.values.begin() + (from - piece.offset), to - from,
                out.begin() + (from - begin));
  }
}

void FlatMemory::append_to(std::vector<float>& out) const {
  for (const Piece& piece : pieces_) {
    out.insert(out.end(), piece.values.begin(), piece.values.end());
  }
}

}  // namespace train::similarity
