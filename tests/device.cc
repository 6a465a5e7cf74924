#include "tests/device.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "scalecom/core/cuda/runtime.h"

namespace scalecom::testing {
namespace {

bool wants_cuda() {
  const char* const name = std::getenv("SCALECOM_TEST_DEVICE");
  return name != nullptr && std::string(name) != "cpu";
}

// Skips all tests of a program that is to run on a GPU where there is none.
class DeviceIsThere final : public ::testing::Environment {
 public:
  void SetUp() override {
    if (wants_cuda() && core::cuda::device_count() == 0) {
      GTEST_SKIP() << "skipped: no CUDA device (" << core::cuda::why_none() << ")";
    }
  }
};

const ::testing::Environment* const kRegistered =
    ::testing::AddGlobalTestEnvironment(new DeviceIsThere);

}  // namespace

core::Device device() {
  return wants_cuda() && kRegistered != nullptr ? core::Device::cuda() : core::Device{};
}

}  // namespace scalecom::testing
