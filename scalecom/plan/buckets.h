#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "scalecom/layout/layout.h"
#include "scalecom/plan/model.h"

namespace scalecom::plan {

/// Tensors that are reduced as one, in the order in which their gradients come.
struct Bucket {
  std::vector<layout::Tensor> tensors;
  std::size_t ready_after = 0;  ///< layers of the backward pass before the one that completes it
};

/// What DistributedDataParallel takes unless told.
constexpr double kBucketBytes = 25.0 * (1 << 20);

/// As DistributedDataParallel cuts them: from the last layer to the first, a bucket is closed when
/// it has `bytes` of fp32 gradients; where that is kBucketBytes, the very first one at a MiB.
std::vector<Bucket> cut_buckets(const Model& model, double bytes);

/// The model's tensors in forward order, each with the FLOPs per gradient that a worker's batch
/// gives it, where the model knows them.
std::vector<layout::Tensor> tensors_of(const Model& model, std::int64_t batch);

}  // namespace scalecom::plan
