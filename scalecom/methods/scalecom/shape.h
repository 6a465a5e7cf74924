#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "scalecom/layout/layout.h"
#include "scalecom/layout/selection.h"

namespace scalecom::methods::scalecom {

/// A run of chunks, in a bucket's own count of them.
struct ChunkRange {
  std::int64_t first = 0;
  std::int64_t last = 0;

  bool contains(std::int64_t chunk) const { return chunk >= first && chunk < last; }
};

/// Where the chunks, the kept entries ("items") and the dense slices of a bucket lie. It follows
/// from the layout and the selection alone: the same on every rank, and all that the wire cost
/// depends on. Chunks and items are numbered through the bucket, slice after slice.
struct Shape {
  /// One compressed slice: a tensor, or a part of one.
  struct Part {
    std::string name;  ///< of its memory
    std::string tensor;
    std::int64_t first = 0;   ///< of its elements in the tensor
    std::int64_t offset = 0;  ///< of its first element in the bucket
    std::int64_t length = 0;
    layout::Cut cut;  ///< these four have no meaning for an exact selection
    std::int64_t first_chunk = 0;
    std::int64_t first_item = 0;
    std::int64_t items = 0;
    /// Chunks of the tensor before this part, where it is divided between chunks: with it, a draw
    /// does not depend on how the tensor is divided.
    std::int64_t chunks_before = 0;
  };
  /// One dense slice, and its place among all dense elements.
  struct DensePart {
    std::string name;  ///< of the memory that it may have from before
    std::int64_t offset = 0;
    std::int64_t length = 0;
    std::int64_t place = 0;
  };

  Shape(const layout::Layout& layout, const layout::Selection& selection);

  bool exact = false;
  std::vector<Part> parts;
  std::vector<DensePart> dense_parts;
  std::int64_t items = 0;
  std::int64_t chunks = 0;
  std::int64_t compressed_elements = 0;
  std::int64_t dense_elements = 0;

  /// All the chunks.
  ChunkRange whole() const { return {0, chunks}; }

  /// Bytes of all packed offsets, of those of a range of chunks, and the pieces they are made of:
  /// chunks [first, last) of a part, in bytes [begin, begin + size) of the range's.
  std::int64_t offset_bytes() const;
  std::int64_t offset_bytes(const ChunkRange& range) const;
  using Visit = std::function<void(const Part& part, std::int64_t first, std::int64_t last,
                                   std::int64_t begin, std::int64_t size)>;
  void for_each_piece(const ChunkRange& range, const Visit& visit) const;

  /// An exact selection sees all compressed slices as one chunk, one after the other.
  layout::Cut exact_cut() const { return {compressed_elements, compressed_elements, items, 0}; }

 private:
  void add(const layout::Slice& slice, const layout::Selection& selection);
};

}  // namespace scalecom::methods::scalecom
