#include "scalecom/methods/scalecom/shape.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "scalecom/core/error.h"
#include "scalecom/core/text.h"
#include "scalecom/wire/offsets.h"

namespace scalecom::methods::scalecom {
namespace {

constexpr std::int64_t kMostElements = std::numeric_limits<std::uint32_t>::max();

// max(1, round(sum of length / rate)) over the compressed slices.
std::int64_t exact_items(const layout::Layout& layout, std::int64_t compressed_elements) {
  if (compressed_elements == 0) return 0;
  double wanted = 0;
  for (const layout::Slice& slice : layout.slices()) {
    if (!slice.dense()) wanted += static_cast<double>(slice.length) / slice.rate;
  }
  return std::clamp<std::int64_t>(std::llround(wanted), 1, compressed_elements);
}

}  // namespace

Shape::Shape(const layout::Layout& layout, const layout::Selection& selection)
    : exact(selection.kind == layout::Selection::Kind::kExact) {
  for (const layout::Slice& slice : layout.slices()) add(slice, selection);
  if (!exact) return;
  items = exact_items(layout, compressed_elements);
  if (compressed_elements > kMostElements) {
    throw core::UsageError(core::concat("[scalecom] select=exact takes buckets of up to ",
                                        kMostElements, " elements, not ", compressed_elements));
  }
}

void Shape::add(const layout::Slice& slice, const layout::Selection& selection) {
  if (slice.dense() || slice.length == 0) {
    dense_parts.push_back({slice.key(), slice.offset, slice.length, dense_elements});
    dense_elements += slice.length;
    return;
  }
  if (slice.length > kMostElements) {
    throw core::UsageError(core::concat("[scalecom] tensor '", slice.name, "' has ", slice.length,
                                        " elements; a compressed tensor has at most ",
                                        kMostElements));
  }
  Part part{slice.key(), slice.name, slice.first, slice.offset, slice.length, {}, chunks, items,
            0,           0};
  if (!exact) {
    part.cut = layout::cut(slice, selection);
    part.items = part.cut.kept();
    if (slice.first > 0) part.chunks_before = slice.first / layout::chunk_of(slice, selection);
    chunks += part.cut.chunks();
    items += part.items;
  }
  compressed_elements += slice.length;
  parts.push_back(part);
}

void Shape::for_each_piece(const ChunkRange& range, const Visit& visit) const {
  std::int64_t begin = 0;
  for (const Part& part : parts) {
    const std::int64_t all = part.cut.chunks();
    const std::int64_t first = std::clamp<std::int64_t>(range.first - part.first_chunk, 0, all);
    const std::int64_t last = std::clamp<std::int64_t>(range.last - part.first_chunk, 0, all);
    if (first >= last) continue;
    const std::int64_t size = wire::packed_bytes(part.cut, first, last);
    visit(part, first, last, begin, size);
    begin += size;
  }
}

std::int64_t Shape::offset_bytes() const {
  if (exact && items > 0) return wire::packed_bytes(exact_cut(), 0, 1);
  return offset_bytes(whole());
}

std::int64_t Shape::offset_bytes(const ChunkRange& range) const {
  std::int64_t bytes = 0;
  for_each_piece(range, [&](const Part&, std::int64_t, std::int64_t, std::int64_t,
                            std::int64_t size) { bytes += size; });
  return bytes;
}

}  // namespace scalecom::methods::scalecom
