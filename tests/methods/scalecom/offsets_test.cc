#include "scalecom/methods/scalecom/host/offsets.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "scalecom/core/error.h"
#include "tests/methods/ranks.h"

// What the network brings names places in memories and gradients: none may lie outside of them.
namespace scalecom::methods::scalecom::host {
namespace {

using Kind = layout::Selection::Kind;

std::string refusal(const std::function<void()>& call) {
  try {
    call();
  } catch (const core::PeerError& error) {
    return error.what();
  }
  return "";
}

TEST(Offsets, ComeBackFromWhatTheyArePackedTo) {
  const Shape shape(testing::layout_of({{100'003, 10}, {57, 10}}), {Kind::kLargest, 0});
  std::vector<std::uint32_t> positions(static_cast<std::size_t>(shape.items));
  for (const Shape::Part& part : shape.parts) {
    for (std::int64_t i = 0; i < part.items; ++i) {
      const std::int64_t position = std::min(10 * i + i % 10, part.length - 1);
      positions[static_cast<std::size_t>(part.first_item + i)] =
          static_cast<std::uint32_t>(position);
    }
  }
  std::vector<std::byte> bytes(static_cast<std::size_t>(shape.offset_bytes()));
  pack(shape, shape.whole(), positions.data(), bytes);
  std::vector<std::uint32_t> back(positions.size());
  unpack(shape, shape.whole(), bytes, back.data());
  EXPECT_EQ(back, positions);
}

TEST(Offsets, BeyondTheirChunkAreRefused) {
  const Shape shape(testing::layout_of({{100, 10}, {57, 10}}), {Kind::kLargest, 0});
  const auto size = static_cast<std::size_t>(shape.offset_bytes());
  std::vector<std::uint32_t> positions(static_cast<std::size_t>(shape.items));
  for (std::size_t at = 0; at < size; ++at) {
    std::vector<std::byte> bytes(size);
    bytes[at] = std::byte{0xff};  // offsets of 15 in chunks of 10
    const std::string message =
        refusal([&] { unpack(shape, shape.whole(), bytes, positions.data()); });
    EXPECT_EQ(message, at < 5 ? "[scalecom] the offsets of 'a' are damaged"
                              : "[scalecom] the offsets of 'b' are damaged");
  }
}

TEST(Offsets, BeyondTheBucketAreRefused) {
  const Shape shape(testing::layout_of({{100, 10}, {57, 10}}), {Kind::kExact, 0});
  const auto size = static_cast<std::size_t>(shape.offset_bytes());
  std::vector<std::uint32_t> positions(static_cast<std::size_t>(shape.items));
  std::vector<std::int64_t> first_items(3, 0);
  // Neither the same place twice, nor places after the last.
  for (const std::byte byte : {std::byte{0}, std::byte{0xff}}) {
    const std::vector<std::byte> bytes(size, byte);
    EXPECT_EQ(refusal([&] { unpack_exact(shape, bytes, positions.data(), first_items); }),
              "[scalecom] the offsets of the bucket are damaged");
  }
}

}  // namespace
}  // namespace scalecom::methods::scalecom::host
