#pragma once

#include <memory>

#include "scalecom/methods/dgc/options.h"
#include "scalecom/methods/memory_store.h"
#include "scalecom/methods/sparse/bucket.h"

namespace scalecom::methods::dgc {

/// DGC of one bucket on a GPU. The host waits for the device several times a tensor, as the entries
/// that are sent, and how many, depend on the data.
std::unique_ptr<sparse::Bucket> make_cuda_bucket(const layout::Layout& layout,
                                                 const Options& options, MemoryStore& memories);

}  // namespace scalecom::methods::dgc
