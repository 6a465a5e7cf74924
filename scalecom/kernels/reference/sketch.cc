#include "scalecom/kernels/reference/sketch.h"

namespace scalecom::kernels::reference {

void find_places(const std::uint32_t* hashes, std::uint32_t columns, std::int64_t count,
                 std::uint32_t* places) {
  sketch::Walk walk(hashes);
  for (std::int64_t i = 0; i < count; ++i) places[i] = sketch::place_of(walk.next(), columns);
}

}  // namespace scalecom::kernels::reference
