#include <algorithm>
#include <vector>

#include "fuzz/input.h"
#include "fuzz/limits.h"
#include "scalecom/wire/items.h"

/// Entries that a peer chose for itself: refused, or ascending positions inside their tensors.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  namespace wire = scalecom::wire;
  fuzz::Input input(data, size);
  const fuzz::Limits limits(std::size_t{1} << 18);
  std::vector<wire::Run> runs(static_cast<std::size_t>(input.number(0, 4)));
  std::size_t total = 0;
  for (wire::Run& run : runs) {
    run.length = input.number(1, 70000);
    run.count = input.number(0, std::min<std::int64_t>(run.length, 300));
    total += static_cast<std::size_t>(run.count);
  }
  std::vector<std::byte> message(static_cast<std::size_t>(wire::items_bytes(runs)));
  std::copy_n(input.rest().begin(), std::min(message.size(), input.rest().size()), message.begin());
  std::vector<std::uint32_t> positions(total);
  std::vector<float> values(total);
  if (!wire::unpack_items(runs, message, positions.data(), values.data())) return 0;
  std::size_t at = 0;
  for (const wire::Run& run : runs) {
    for (std::int64_t i = 0; i < run.count; ++i, ++at) {
      fuzz::require(positions[at] < run.length, "a position is inside its tensor");
      fuzz::require(i == 0 || positions[at - 1] < positions[at], "positions ascend");
    }
  }
  return 0;
}
