#pragma once

#include <memory>

#include "scalecom/methods/scalecom/bucket.h"

namespace scalecom::methods::scalecom::host {

/// A bucket in host memory, its work done by the pool's threads.
std::unique_ptr<Bucket> make_bucket(const layout::Layout& layout, const Options& options,
                                    MemoryStore& memories);

}  // namespace scalecom::methods::scalecom::host
