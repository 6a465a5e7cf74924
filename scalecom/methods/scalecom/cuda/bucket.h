#pragma once

#include <memory>

#include "scalecom/methods/scalecom/bucket.h"

namespace scalecom::methods::scalecom::cuda {

/// A bucket on a GPU: every call puts kernels on the step's stream and returns. What the host would
/// have to look at (a NaN anywhere, damaged offsets) is decided on the device.
std::unique_ptr<Bucket> make_bucket(const layout::Layout& layout, const Options& options,
                                    MemoryStore& memories);

}  // namespace scalecom::methods::scalecom::cuda
