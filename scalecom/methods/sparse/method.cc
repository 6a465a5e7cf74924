#include "scalecom/methods/sparse/method.h"

#include "scalecom/core/cuda/runtime.h"
#include "scalecom/core/error.h"
#include "scalecom/core/text.h"
#include "scalecom/kernels/elementwise.h"

namespace scalecom::methods::sparse {

// The first step of a warm-up makes room for those after it, too: there all ranks hear of it where
// one has none.
Bucket& SparseMethod::bucket_of(const layout::Layout& layout, std::int64_t step) {
  const bool dense = warming_up(step);
  if (dense) ahead_.use(memories_.stream());
  if (!dense) memories_.take_over(ahead_);
  Bucket& compressed = buckets_.get(layout, false, step, [&] {
    for (const layout::Slice& slice : layout.slices()) {
      memories_.find(slice.name, slice.length);  // for its check
    }
    return make_bucket(layout, dense ? ahead_ : memories_);
  });
  if (!dense) return compressed;
  return buckets_.get(layout, true, step,
                      [&] { return make_bucket(layout::all_dense(layout), memories_); });
}

void SparseMethod::begin_step(std::int64_t step) {
  memories_.forget_aside();
  buckets_.begin_step(step);
}

void SparseMethod::prepare_bucket(const FirstBucket& first) {
  memories_.use(first.stream);
  bucket_of(first.layout, first.step);
  for (const bool dense : {false, true}) {
    Bucket* const bucket = buckets_.find(first.layout, dense);
    if (bucket != nullptr) bucket->reserve(first.dtype, first.ranks, first.stream);
  }
}

void SparseMethod::reduce_bucket(const core::Buffer& grad, const layout::Layout& layout,
                                 comm::Communicator& communicator, std::int64_t step,
                                 const core::Stream& stream) {
  if (host_looks() && core::cuda::is_capturing(stream)) {
    throw core::UsageError(core::concat("[reduce] the stream is being captured, and '", spec(),
                                        "' has the host look at every step as it is done"));
  }
  const Bucket* const known = buckets_.find(layout, warming_up(step));
  check_first(known != nullptr ? known->step() : -1, stream);
  memories_.use(stream);
  Bucket& bucket = bucket_of(layout, step);
  bucket.begin(grad, communicator.size(), step, stream);
  bucket.compress();
  const bool folded = fold_memories(bucket, communicator.size());
  communicator.all_reduce(bucket.rest(), stream);
  bucket.exchange(communicator);
  bucket.finish();

  // Only these have the host look at what came out.
  if (!folded && !options().nonfinite.is_error()) return;
  if (!bucket.was_sent()) {
    options().nonfinite.refuse("reduce", step);
    return;
  }
  for (const Shape::DensePart& part : bucket.shape().dense_parts) memories_.set_aside(part.name);
}

// A slice that is dense now and was compressed before sends all that its memory holds. Whether
// there was any.
bool SparseMethod::fold_memories(Bucket& bucket, int ranks) {
  bool folded = false;
  for (const Shape::DensePart& part : bucket.shape().dense_parts) {
    const float* memory = memories_.find(part.name, part.length);
    if (memory == nullptr) continue;
    kernels::elementwise::add_quotient(bucket.rest().data() + part.place, memory, part.length, 1.0F,
                                       1.0F / static_cast<float>(ranks), memories_.stream());
    folded = true;
  }
  return folded;
}

void SparseMethod::undo() {
  memories_.bring_back();
  buckets_.for_each([this](Bucket& bucket) {
    if (bucket.step() == steps() - 1) bucket.put_back();
  });
}

void SparseMethod::rescale(float factor) {
  memories_.forget_aside();
  memories_.scale(factor);
  buckets_.for_each([](Bucket& bucket) { bucket.forget_sent(); });
}

std::function<void()> SparseMethod::way_back() {
  return [this, memories = memories_, ahead = ahead_, buckets = buckets_] {
    memories_ = memories;
    ahead_ = ahead;
    buckets_ = buckets;
  };
}

void SparseMethod::after_replays(std::int64_t steps) {
  buckets_.replayed(steps);
  buckets_.for_each([steps](Bucket& bucket) { bucket.replayed(steps); });
}

void SparseMethod::replace_memories(Memories memories) {
  memories_.replace(std::move(memories));
  ahead_.replace({});
  buckets_.clear();
}

comm::Counters SparseMethod::cost(const layout::Layout& layout, int size, int rank,
                                  std::int64_t step) const {
  const bool dense = warming_up(step);
  comm::Counters cost;
  if (!dense) cost = exchange_cost(layout, size, rank, step);
  const std::int64_t elements = dense ? layout.elements() : Shape(layout).dense_elements;
  cost[comm::Call::kAllReduce] = comm::all_reduce_traffic(elements + 1, size, rank);
  return cost;
}

}  // namespace scalecom::methods::sparse
