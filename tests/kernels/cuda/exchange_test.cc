#include "scalecom/kernels/cuda/exchange.h"

#include <gtest/gtest.h>

#include "tests/comm/device_array.h"
#include "tests/comm/world.h"

namespace scalecom::kernels::cuda {
namespace {

using comm::testing::awkward_array;
using comm::testing::awkward_sum;
using comm::testing::bytes_of;
using comm::testing::same_bits;
using comm::testing::to_device;
using comm::testing::to_host;

class ExchangeTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (core::cuda::device_count() == 0) GTEST_SKIP() << "skipped: no CUDA device";
    stream_ = core::Stream::cuda(core::Device::cuda());
  }
  core::Stream stream_;
};

TEST_F(ExchangeTest, CopiesFromAnywhereToAnywhere) {
  // Every way in which both ends can lie, and lengths around units, blocks and strides.
  const std::int64_t room = 70'100;
  const auto from = bytes_of(1, room);
  const auto d_from = to_device(from, stream_);
  for (const std::int64_t bytes : {0, 1, 3, 4, 15, 16, 17, 63, 1000, 16384, 70'001}) {
    std::vector<Copy> copies;
    std::vector<std::byte> expected(static_cast<std::size_t>(room) * 40, std::byte{7});
    auto d_to = to_device(expected, stream_);
    for (int n = 0; n < 40; ++n) {
      const std::int64_t from_offset = n % 17;
      const std::int64_t to_offset = n * room + n % 19;
      copies.push_back({d_from.data() + from_offset, d_to.data() + to_offset, bytes});
      std::copy_n(from.begin() + from_offset, bytes, expected.begin() + to_offset);
    }
    copy_all(copies, stream_);
    EXPECT_EQ(to_host(d_to, stream_), expected) << bytes;
  }
}

TEST_F(ExchangeTest, CopiesMoreThanOneLaunchHolds) {
  for (const int count : {0, 1, 127, 128, 129, 300}) {
    const auto from = bytes_of(2, 300);
    const auto d_from = to_device(from, stream_);
    core::Array<std::byte> d_to(stream_.device(), 300);
    std::vector<Copy> copies;
    for (int n = 0; n < count; ++n) copies.push_back({d_from.data() + n, d_to.data() + n, 1});
    copy_all(copies, stream_);
    std::vector<std::byte> expected(300);
    std::copy_n(from.begin(), count, expected.begin());
    EXPECT_EQ(to_host(d_to, stream_), expected) << count;
  }
}

TEST_F(ExchangeTest, SumsHaveTheBitsOfTheHosts) {
  for (const int parts : {2, 3, 9, 32, 130}) {
    for (const std::int64_t length : {0, 1, 255, 257, 4099, 600'001}) {
      if (parts > 9 && length > 5000) continue;
      for (const int into : {0, parts / 2, parts - 1}) {
        std::vector<core::Array<float>> arrays;
        std::vector<const float*> d_parts;
        for (int part = 0; part < parts; ++part) {
          arrays.push_back(to_device(awkward_array(part, length), stream_));
          d_parts.push_back(arrays.back().data());
        }
        core::Array<float>& out = arrays[static_cast<std::size_t>(into)];
        sum_in_order(d_parts, out.data(), length, stream_);
        EXPECT_TRUE(same_bits(to_host(out, stream_), awkward_sum(parts, length)))
            << parts << " of " << length;
      }
    }
  }
}

}  // namespace
}  // namespace scalecom::kernels::cuda
