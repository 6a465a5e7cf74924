#pragma once

#include <memory>

#include "scalecom/methods/memory_store.h"
#include "scalecom/methods/sparse/bucket.h"

namespace scalecom::methods::topk {

/// A bucket where the memories lie.
std::unique_ptr<sparse::Bucket> make_host_bucket(const layout::Layout& layout,
                                                 MemoryStore& memories);
std::unique_ptr<sparse::Bucket> make_cuda_bucket(const layout::Layout& layout,
                                                 MemoryStore& memories);

}  // namespace scalecom::methods::topk
