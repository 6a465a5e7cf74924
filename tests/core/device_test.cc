#include "scalecom/core/device.h"

#include <gtest/gtest.h>

#include "scalecom/core/array.h"
#include "scalecom/core/cuda/runtime.h"
#include "scalecom/core/error.h"

namespace scalecom::core {
namespace {

std::string refusal(const std::string& text) {
  try {
    parse_device(text);
  } catch (const UsageError& error) {
    return error.what();
  }
  return "";
}

TEST(Device, HasAName) {
  EXPECT_EQ(to_string(Device{}), "cpu");
  EXPECT_EQ(to_string(Device::cuda(3)), "cuda:3");
  EXPECT_EQ(parse_device("cpu"), Device{});
}

TEST(Device, RefusesWhatIsNone) {
  for (const char* const text :
       {"", "gpu", "cuda:", "cuda:x", "cuda:-1", "cuda1", "cuda:1x", "CPU", "cuda:99999999999"}) {
    EXPECT_NE(refusal(text).find("give cpu, cuda or cuda:0"), std::string::npos) << text;
  }
}

TEST(Device, SaysWhyThereIsNoGpu) {
  if (cuda::device_count() > 0) {
    EXPECT_EQ(parse_device("cuda"), Device::cuda(0));
    EXPECT_EQ(cuda::why_none(), "");
    const std::string none = "cuda:" + std::to_string(cuda::device_count());
    EXPECT_NE(refusal(none).find("there is no " + none), std::string::npos) << refusal(none);
    EXPECT_THROW(Stream::cuda(Device::cuda(cuda::device_count())), UsageError);
    return;
  }
  EXPECT_NE(cuda::why_none(), "");
  EXPECT_NE(refusal("cuda").find(cuda::why_none()), std::string::npos) << refusal("cuda");
  EXPECT_THROW(Stream::cuda(Device::cuda()), UsageError);
  EXPECT_THROW(Array<float>(Device::cuda(), 4), UsageError);
}

TEST(Array, OnTheHostIsZeroAndMoves) {
  Array<float> array(Device{}, 5);
  for (const float value : array.span()) EXPECT_EQ(value, 0.0F);
  array.data()[4] = 3;
  Array<float> moved = std::move(array);
  EXPECT_EQ(moved.span()[4], 3.0F);
  EXPECT_EQ(moved.size(), 5);
  AlignedArray<float> host(3);
  host[1] = 7;
  const float* const data = host.data();
  const Array<float> adopted(std::move(host));
  EXPECT_EQ(adopted.data(), data);
  EXPECT_EQ(adopted.span()[1], 7.0F);
  EXPECT_EQ(adopted.device(), Device{});
}

// Needs a GPU from here on.
class OnGpu : public ::testing::Test {
 protected:
  void SetUp() override {
    if (cuda::device_count() == 0) GTEST_SKIP() << "skipped: no CUDA device";
  }
};

TEST_F(OnGpu, CopiesKeepTheirPlaceInTheStream) {
  const Stream stream = Stream::cuda(Device::cuda());
  Array<float> there(Device::cuda(), 1000);
  std::vector<float> here(1000, 1.0F);
  cuda::copy(here.data(), there.data(), 4000, stream);
  cuda::synchronize(stream);
  EXPECT_EQ(here, std::vector<float>(1000, 0.0F)) << "new memory is zero";
  std::vector<float> numbers(1000);
  for (std::size_t i = 0; i < 1000; ++i) numbers[i] = static_cast<float>(i);
  cuda::copy(there.data(), numbers.data(), 4000, stream);
  cuda::set_zero(there.data() + 10, 40, stream);
  cuda::copy(here.data(), there.data(), 4000, stream);
  cuda::synchronize(stream);
  for (std::size_t i = 0; i < 1000; ++i) {
    EXPECT_EQ(here[i], i >= 10 && i < 20 ? 0.0F : numbers[i]);
  }
  EXPECT_EQ(cuda::device_of(there.data()), Device::cuda());
  EXPECT_EQ(cuda::device_of(here.data()), Device{});
}

TEST_F(OnGpu, TooLittleMemorySaysHowMuchWasNeeded) {
  const cuda::MemoryInfo info = cuda::memory_info(Device::cuda());
  EXPECT_GT(info.total, 0);
  try {
    Array<std::byte> array(Device::cuda(), 2 * info.total);
    FAIL() << "twice the memory was given";
  } catch (const DeviceError& error) {
    const std::string mebibytes = std::to_string((2 * info.total + (1 << 20) - 1) >> 20);
    EXPECT_NE(std::string(error.what()).find(mebibytes + " MiB were asked for"), std::string::npos)
        << error.what();
  }
  EXPECT_NO_THROW(Array<std::byte>(Device::cuda(), 1000)) << "and the device can still be used";
}

TEST_F(OnGpu, ThePeakIsThatOfThisProcess) {
  const Device device = Device::cuda();
  const Array<std::byte> kept(device, 1000);
  cuda::reset_peak(device);
  const std::int64_t before = cuda::peak_bytes(device);
  { const Array<std::byte> passing(device, 1 << 20); }
  { const Array<std::byte> shorter(device, 1 << 10); }
  EXPECT_EQ(cuda::peak_bytes(device) - before, 1 << 20);
  cuda::reset_peak(device);
  EXPECT_EQ(cuda::peak_bytes(device), before);
}

TEST_F(OnGpu, EventsOrderStreams) {
  const Stream first = Stream::cuda(Device::cuda());
  const Stream second = Stream::cuda(Device::cuda());
  const std::int64_t count = 1 << 24;
  Array<float> from(Device::cuda(), count);
  Array<float> to(Device::cuda(), count);
  std::vector<float> ones(static_cast<std::size_t>(count), 1.0F);
  cuda::copy(from.data(), ones.data(), 4 * count, first);
  cuda::Event ready(Device::cuda());
  ready.record(first);
  ready.make_wait(second);
  cuda::copy(to.data(), from.data(), 4 * count, second);
  float last = 0;
  cuda::copy(&last, to.data() + count - 1, 4, second);
  cuda::synchronize(second);
  EXPECT_EQ(last, 1.0F);
  EXPECT_TRUE(ready.is_done());
}

}  // namespace
}  // namespace scalecom::core
