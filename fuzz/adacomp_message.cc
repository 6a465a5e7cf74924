#include <array>
#include <vector>

#include "fuzz/input.h"
#include "fuzz/limits.h"
#include "scalecom/core/error.h"
#include "scalecom/methods/adacomp/bucket.h"

/// A whole message of AdaComp, as a peer may have sent it.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using scalecom::layout::Slice;
  namespace adacomp = scalecom::methods::adacomp;
  static const scalecom::layout::Layout layout({Slice{"a", 0, 300, 1, {10, 30}, 0},
                                                Slice{"b", 300, 20, 1, {20}, 0},
                                                Slice{"c", 320, 120, 1, {5, 4, 6}, 0}});
  static scalecom::methods::MemoryStore memories;
  static adacomp::Bucket bucket(layout, {}, &memories);
  const fuzz::Limits limits(std::size_t{1} << 18);
  std::vector<float> grad(static_cast<std::size_t>(layout.elements()));
  const std::array messages = {std::as_bytes(std::span(data, size))};
  try {
    bucket.add_up(messages, 1.0F, scalecom::core::Buffer::of(grad.data(), layout.elements()));
  } catch (const scalecom::core::PeerError&) {
  }
  return 0;
}
