#include "train/loop/losses.h"

#include <gtest/gtest.h>

#include <vector>

#include "tests/device.h"
#include "train/machine/host_copy.h"

namespace train::loop {
namespace {

namespace core = scalecom::core;

TEST(LossesTest, ComeInOrderAndOneLate) {
  const core::Device device = scalecom::testing::device();
  const core::Stream stream = device.is_cuda() ? core::Stream::cuda(device) : core::Stream();
  Losses losses(device);
  for (int i = 0; i < 10; ++i) {
    machine::from_host(std::vector<float>{0.5F * static_cast<float>(i)}, {losses.next(), 1},
                       stream);
    losses.send(stream);
    EXPECT_EQ(losses.waiting(), i == 0 ? 1 : 2);
    if (i == 0) continue;
    EXPECT_EQ(losses.receive(), 0.5 * (i - 1));
  }
  EXPECT_EQ(losses.receive(), 4.5);
  EXPECT_EQ(losses.waiting(), 0);
}

}  // namespace
}  // namespace train::loop
