#pragma once

#include "scalecom/core/device.h"

/// Tests that are the same on every device: a program is run once for each, the device named by
/// SCALECOM_TEST_DEVICE ("cuda"; the CPU by default).
namespace scalecom::testing {

core::Device device();

}  // namespace scalecom::testing
