#include "scalecom/methods/sparse/items.h"

#include <atomic>

#include "scalecom/core/error.h"
#include "scalecom/methods/sparse/blocks.h"

namespace scalecom::methods::sparse {

std::vector<wire::Run> runs_of(const Shape& shape, std::span<const std::int64_t> counts) {
  std::vector<wire::Run> runs;
  runs.reserve(counts.size());
  for (std::size_t i = 0; i < counts.size(); ++i) {
    runs.push_back({shape.parts[i].length, counts[i]});
  }
  return runs;
}

Items::Items(std::vector<wire::Run> all) : runs(std::move(all)) {
  std::int64_t count = 0;
  for (const wire::Run& run : runs) count += run.count;
  positions.resize(static_cast<std::size_t>(count));
  values.resize(static_cast<std::size_t>(count));
}

void Items::pack(std::span<std::byte> out) const {
  wire::pack_items(runs, positions.data(), values.data(), out);
}

void Items::unpack(std::span<const std::byte> in) {
  if (!wire::unpack_items(runs, in, positions.data(), values.data())) {
    throw core::PeerError("[reduce] the entries that a peer sent are damaged");
  }
}

std::vector<kernels::Given> Items::by_part() const {
  std::vector<kernels::Given> all;
  std::int64_t first = 0;
  for (const wire::Run& run : runs) {
    all.push_back({positions.data() + first, values.data() + first, run.count});
    first += run.count;
  }
  return all;
}

bool scatter(const Shape& shape, const core::Buffer& grad, std::span<const Items> ranks,
             float factor) {
  std::vector<std::vector<kernels::Given>> given(shape.parts.size());
  for (const Items& items : ranks) {
    const std::vector<kernels::Given> parts = items.by_part();
    for (std::size_t i = 0; i < parts.size(); ++i) given[i].push_back(parts[i]);
  }
  std::atomic<bool> finite{true};
  for_each_block(shape, [&](std::size_t part, std::int64_t begin, std::int64_t end) {
    const kernels::Tensor tensor = tensor_of(shape.parts[part], grad, nullptr);
    if (!kernels::scatter_sum(tensor, begin, end, given[part], factor)) {
      finite.store(false, std::memory_order_relaxed);
    }
  });
  return finite;
}

}  // namespace scalecom::methods::sparse
