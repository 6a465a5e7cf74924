#pragma once

#include <cstdint>
#include <vector>

/// What AdaComp does to every element.
namespace scalecom::kernels {

struct Tensor;

/// An entry that is sent by its sign.
struct Ternary {
  std::uint32_t position = 0;  ///< in the tensor
  bool negative = false;

  bool operator==(const Ternary&) const = default;
};

namespace bins {

/// What a pass over one bin finds, with room for as many entries as the bin has.
struct Found {
  std::uint32_t* positions = nullptr;  ///< in the tensor, ascending
  std::int32_t* keys = nullptr;        ///< scratch
  float largest = 0;                   ///< |G|
  bool finite = true;                  ///< stays false once it is
};

/// Of one instruction set, on one thread; every set gives the same.
struct Passes {
  /// Of the bin [begin, end): m becomes G, and the entries to be sent are found, but not taken out
  /// of the memory. Returns how many they are. What G and H are: select().
  std::int64_t (*find)(const Tensor& tensor, std::int64_t begin, std::int64_t end, Found& found);
};

/// What one tensor sends: these entries, each its sign times `scale`.
struct Sent {
  std::vector<Ternary> entries;
  std::vector<float> before;  ///< the memory of each entry as it was, G
  float scale = 0;
  bool finite = true;
};

/// With G = m + g and H = G + g: m becomes G, every entry with |H| at least the largest |G| of its
/// bin is sent, and its memory becomes G - sign(G) * scale; `scale` is the mean over the bins of
/// their largest |G|. An entry whose G is 0 has no sign and is not sent. A g that makes H not
/// finite counts as 0. Divides its work among the pool's threads; the result does not depend on
/// how.
Sent select(const Tensor& tensor, std::int64_t bin);

/// The memory as if nothing had been sent.
void put_back(const Tensor& tensor, const Sent& sent);

}  // namespace bins
}  // namespace scalecom::kernels
