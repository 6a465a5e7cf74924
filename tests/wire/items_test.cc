#include "scalecom/wire/items.h"

#include <gtest/gtest.h>

#include <vector>

namespace scalecom::wire {
namespace {

TEST(Items, CrossUnchanged) {
  const std::vector<wire::Run> runs{{1, 1}, {1000, 3}, {7, 0}, {0xffffffff, 2}, {2, 2}};
  const std::vector<std::uint32_t> positions{0, 0, 500, 999, 7, 0xfffffffe, 0, 1};
  const std::vector<float> values{1, -2, 3, -0.0F, 5, 6, 7, 8};
  // 8 values; then 0 bits, 3 of 10, none, 2 of 32 and 2 of 1, in whole bytes; then up to 4.
  EXPECT_EQ(items_bytes(runs), 32 + 4 + 8 + 1 + 3);
  std::vector<std::byte> message(static_cast<std::size_t>(items_bytes(runs)), std::byte{0xff});
  pack_items(runs, positions.data(), values.data(), message);
  for (std::size_t i = 45; i < 48; ++i) EXPECT_EQ(message[i], std::byte{}) << "spare bytes are 0";
  std::vector<std::uint32_t> positions_back(positions.size());
  std::vector<float> values_back(values.size());
  ASSERT_TRUE(unpack_items(runs, message, positions_back.data(), values_back.data()));
  EXPECT_EQ(positions_back, positions);
  EXPECT_EQ(values_back, values);
}

TEST(Items, NothingTakesNoBytes) {
  const std::vector<wire::Run> runs{{5, 0}};
  EXPECT_EQ(items_bytes(runs), 0);
  EXPECT_EQ(items_bytes({}), 0);
  pack_items(runs, nullptr, nullptr, {});
  EXPECT_TRUE(unpack_items(runs, {}, nullptr, nullptr));
}

TEST(Items, OffsetsThatNobodyPackedAreRefused) {
  // In either of two tensors.
  const std::vector<wire::Run> runs{{5, 2}, {5, 2}};
  const std::vector<float> values{1, 2, 3, 4};
  std::vector<std::byte> message(static_cast<std::size_t>(items_bytes(runs)));
  std::vector<std::uint32_t> positions(4);
  std::vector<float> back(4);
  for (const auto& [first, second, sound] :
       {std::tuple(1U, 4U, true), std::tuple(4U, 1U, false), std::tuple(3U, 3U, false),
        std::tuple(2U, 5U, false), std::tuple(7U, 1U, false)}) {
    for (const std::vector<std::uint32_t>& sent :
         {std::vector<std::uint32_t>{first, second, 1, 4},
          std::vector<std::uint32_t>{1, 4, first, second}}) {
      pack_items(runs, sent.data(), values.data(), message);
      EXPECT_EQ(unpack_items(runs, message, positions.data(), back.data()), sound) << first;
    }
  }
}

}  // namespace
}  // namespace scalecom::wire
