#include <vector>

#include "fuzz/input.h"
#include "fuzz/limits.h"
#include "scalecom/wire/ternary.h"

/// AdaComp's words: refused, or entries that pack to the same bytes.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  namespace wire = scalecom::wire;
  fuzz::Input input(data, size);
  const std::int64_t bin = input.number(1, 700);
  const scalecom::layout::Bins bins{input.number(1, 5000), bin};
  std::vector<scalecom::kernels::Ternary> entries;
  const fuzz::Limits limits((std::size_t{1} << 16) + 64 * size);
  if (!wire::unpack(bins, input.rest(), entries)) return 0;
  std::vector<std::byte> again;
  wire::pack(bins, entries, again);
  fuzz::require(std::equal(again.begin(), again.end(), input.rest().begin(), input.rest().end()),
                "what was unpacked packs to the same bytes");
  return 0;
}
