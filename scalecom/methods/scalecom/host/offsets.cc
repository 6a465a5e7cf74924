#include "scalecom/methods/scalecom/host/offsets.h"

#include <algorithm>

#include "scalecom/core/error.h"
#include "scalecom/core/text.h"
#include "scalecom/core/thread_pool.h"
#include "scalecom/wire/offsets.h"

namespace scalecom::methods::scalecom::host {
namespace {

using Part = Shape::Part;

[[noreturn]] void damaged(const std::string& whose) {
  throw core::PeerError(core::concat("[scalecom] the offsets ", whose, " are damaged"));
}

// A run of a piece's chunks whose offsets begin at a whole byte: work for one thread.
struct Run {
  const Part* part;
  std::int64_t first;
  std::int64_t last;
  std::int64_t begin;  // bytes
  std::int64_t size;
};

std::vector<Run> runs_of(const Shape& shape, const ChunkRange& range) {
  // A multiple of 8 chunks, so that any number of bits each makes whole bytes.
  constexpr std::int64_t kRunChunks = 8192;
  std::vector<Run> runs;
  shape.for_each_piece(range, [&](const Part& part, std::int64_t first, std::int64_t last,
                                  std::int64_t begin, std::int64_t /*size*/) {
    while (first < last) {
      const std::int64_t next = std::min(last, first + kRunChunks);
      const std::int64_t size = wire::packed_bytes(part.cut, first, next);
      runs.push_back({&part, first, next, begin, size});
      begin += size;
      first = next;
    }
  });
  return runs;
}

// work(run) for every run, on the pool.
template <typename Work>
void for_each_run(const Shape& shape, const ChunkRange& range, const Work& work) {
  const std::vector<Run> runs = runs_of(shape, range);
  core::parallel_for(static_cast<std::int64_t>(runs.size()),
                     [&](std::int64_t i) { work(runs[static_cast<std::size_t>(i)]); });
}

template <typename Bytes>
Bytes bytes_of(const Run& run, Bytes all) {
  return all.subspan(static_cast<std::size_t>(run.begin), static_cast<std::size_t>(run.size));
}

}  // namespace

void pack(const Shape& shape, const ChunkRange& led, const std::uint32_t* positions,
          std::span<std::byte> out) {
  for_each_run(shape, led, [&](const Run& run) {
    wire::pack(run.part->cut, run.first, run.last, positions + run.part->first_item,
               bytes_of(run, out));
  });
}

void unpack(const Shape& shape, const ChunkRange& led, std::span<const std::byte> in,
            std::uint32_t* positions) {
  for_each_run(shape, led, [&](const Run& run) {
    if (!wire::unpack(run.part->cut, run.first, run.last, bytes_of(run, in),
                      positions + run.part->first_item)) {
      damaged(core::concat("of '", run.part->name, "'"));
    }
  });
}

void pack_exact(const Shape& shape, std::span<const std::int64_t> first_items,
                const std::uint32_t* positions, std::span<std::byte> out) {
  std::vector<std::uint32_t> absolute(static_cast<std::size_t>(shape.items));
  std::int64_t base = 0;
  for (std::size_t part = 0; part < shape.parts.size(); ++part) {
    for (std::int64_t i = first_items[part]; i < first_items[part + 1]; ++i) {
      absolute[static_cast<std::size_t>(i)] = positions[i] + static_cast<std::uint32_t>(base);
    }
    base += shape.parts[part].length;
  }
  wire::pack(shape.exact_cut(), 0, 1, absolute.data(), out);
}

void unpack_exact(const Shape& shape, std::span<const std::byte> in, std::uint32_t* positions,
                  std::span<std::int64_t> first_items) {
  std::vector<std::uint32_t> absolute(static_cast<std::size_t>(shape.items));
  if (!wire::unpack(shape.exact_cut(), 0, 1, in, absolute.data())) damaged("of the bucket");
  std::size_t item = 0;
  std::int64_t base = 0;
  for (std::size_t part = 0; part < shape.parts.size(); ++part) {
    const std::int64_t end = base + shape.parts[part].length;
    for (; item < absolute.size() && absolute[item] < end; ++item) {
      positions[item] = absolute[item] - static_cast<std::uint32_t>(base);
    }
    first_items[part + 1] = static_cast<std::int64_t>(item);
    base = end;
  }
}

}  // namespace scalecom::methods::scalecom::host
