#include "scalecom/methods/sparse/items.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "scalecom/core/error.h"

namespace scalecom::methods::sparse {
namespace {

// A place outside of its tensor would be written to.
TEST(Items, ThatCannotBeAreRefused) {
  Items items({{100, 3}, {57, 2}});
  items.positions = {7, 42, 99, 0, 56};
  items.values = {1, 2, 3, 4, 5};
  std::vector<std::byte> bytes(static_cast<std::size_t>(items.bytes()));
  items.pack(bytes);
  Items back({{100, 3}, {57, 2}});
  back.unpack(bytes);
  EXPECT_EQ(back.positions, items.positions);
  EXPECT_EQ(back.values, items.values);
  const std::size_t values = 5 * sizeof(float);
  for (const std::byte byte : {std::byte{0}, std::byte{0xff}}) {
    std::vector<std::byte> damaged = bytes;
    std::fill(damaged.begin() + values, damaged.end(), byte);
    EXPECT_THROW(back.unpack(damaged), core::PeerError);
  }
}

}  // namespace
}  // namespace scalecom::methods::sparse
