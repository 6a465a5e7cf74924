#pragma once

#include <functional>

#include "scalecom/core/stream.h"

namespace bench::cuda {

/// Milliseconds that what `work` puts on the stream takes there, by the device's own clock.
/// Whatever was put there before keeps the device busy while the host puts the work behind it, as a
/// backward pass does.
double timed(const scalecom::core::Stream& stream, const std::function<void()>& work);

}  // namespace bench::cuda
