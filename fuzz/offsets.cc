#include <algorithm>
#include <vector>

#include "fuzz/input.h"
#include "fuzz/limits.h"
#include "scalecom/wire/offsets.h"

/// Offsets that a leader sent: refused, or ascending positions inside their chunks.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  namespace wire = scalecom::wire;
  fuzz::Input input(data, size);
  const std::int64_t length = input.number(1, 5000);
  const std::int64_t chunk = input.number(1, length);
  const std::int64_t keep = input.number(1, std::min<std::int64_t>(chunk, 9));
  const std::int64_t tail = length % chunk;
  const scalecom::layout::Cut cut{length, chunk, keep, std::min(keep, tail)};
  const std::int64_t first = input.number(0, cut.chunks());
  const std::int64_t last = input.number(first, cut.chunks());

  const fuzz::Limits limits(std::size_t{1} << 18);
  std::vector<std::byte> message(static_cast<std::size_t>(wire::packed_bytes(cut, first, last)));
  std::copy_n(input.rest().begin(), std::min(message.size(), input.rest().size()), message.begin());
  std::vector<std::uint32_t> positions(static_cast<std::size_t>(cut.kept()));
  if (!wire::unpack(cut, first, last, message, positions.data())) return 0;
  for (std::int64_t i = cut.kept_before(first); i < cut.kept_before(last); ++i) {
    const auto at = static_cast<std::size_t>(i);
    fuzz::require(positions[at] < length, "a position is inside its tensor");
    fuzz::require(i == cut.kept_before(first) || positions[at - 1] < positions[at],
                  "positions ascend");
  }
  return 0;
}
