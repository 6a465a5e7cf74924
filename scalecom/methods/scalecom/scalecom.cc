#include "scalecom/methods/scalecom/scalecom.h"

#include <utility>

#include "scalecom/core/cuda/runtime.h"
#include "scalecom/core/error.h"
#include "scalecom/core/text.h"
#include "scalecom/kernels/elementwise.h"
#include "scalecom/kernels/pieces.h"
#include "scalecom/methods/buckets.h"
#include "scalecom/methods/dense_mean.h"
#include "scalecom/methods/scalecom/bucket.h"
#include "scalecom/methods/scalecom/conservation.h"
#include "scalecom/methods/scalecom/options.h"

namespace scalecom::methods::scalecom {
namespace {

class ScaleCom final : public Method {
 public:
  ScaleCom(Options::Feedback feedback, const core::OptionString& options) : options_(feedback) {
    options_.read(options);
  }

  layout::RatePolicy rate_policy() const override { return options_.rates; }
  bool divides() const override { return options_.select.kind != layout::Selection::Kind::kExact; }
  std::int64_t granule(const layout::Slice& slice) const override {
    return layout::chunk_of(slice, options_.select);
  }
  bool may_refuse() const override { return checked() || options_.nonfinite.is_error(); }
  comm::Counters cost(const layout::Layout& layout, int size, int rank,
                      std::int64_t step) const override;
  std::optional<Choice> choice(std::int64_t step) const override {
    if (step < options_.warmup) return std::nullopt;
    return Choice{options_.select, options_.decay, options_.gain};
  }
  void undo() override;
  void spoil_where(const float* mark, const core::Buffer& /*grad*/,
                   const core::Stream& /*stream*/) override {
    mark_ = mark;
  }
  void rescale(float factor) override;
  void forget(const std::string& tensor) override { memories_.forget(tensor); }
  std::vector<NamedMemory> memories() const override { return memories_.list(); }

 protected:
  void begin_step(std::int64_t step) override;
  void prepare_bucket(const FirstBucket& first) override;
  std::function<void()> way_back() override {
    return [this, memories = memories_, ahead = ahead_, buckets = buckets_] {
      memories_ = memories;
      ahead_ = ahead;
      buckets_ = buckets;
    };
  }
  void after_replays(std::int64_t steps) override;
  void reduce_bucket(const core::Buffer& grad, const layout::Layout& layout,
                     comm::Communicator& communicator, std::int64_t step,
                     const core::Stream& stream) override;
  std::string spec_text() const override {
    return core::concat(options_.name(), ",", options_.text());
  }
  void apply(const std::string& settings) override;
  void apply_scale(const LossScale& scale, const core::Stream& stream) override;
  void replace_memories(Memories memories) override;

 private:
  bool checked() const { return options_.check == Options::kConserve; }
  bool narrow() const { return options_.value_type() != core::DType::kFloat32; }
  Bucket& bucket_of(const layout::Layout& layout, std::int64_t step);

  void reduce_compressed(Bucket& bucket, comm::Communicator& communicator, const float* mark);
  void reduce_dense(Bucket& bucket, const core::Buffer& grad, comm::Communicator& communicator);
  void exchange_offsets(Bucket& bucket, comm::Communicator& communicator);
  float sum(Bucket& bucket, comm::Communicator& communicator);
  void check_capture(const core::Stream& stream) const;
  bool fold_memories(const Shape& shape, float factor, float* dense, bool by_place);
  void set_aside_folded(const Shape& shape);

  Options options_;
  MemoryStore memories_;
  MemoryStore ahead_;  // made in the warm-up for the steps after it
  Buckets<Bucket> buckets_;
  DenseMean dense_mean_;
  NarrowMean narrow_mean_;
  Conservation books_;
  const float* mark_ = nullptr;  // of the next bucket
};

// The first step of a warm-up makes room for those after it, too: there all ranks hear of it where
// one has none.
Bucket& ScaleCom::bucket_of(const layout::Layout& layout, std::int64_t step) {
  const bool warming_up = step < options_.warmup;
  if (warming_up) ahead_.use(memories_.stream());
  if (!warming_up) memories_.take_over(ahead_);
  Bucket& compressed = buckets_.get(layout, false, step, [&] {
    for (const layout::Slice& slice : layout.slices()) {
      memories_.claim(slice);
      memories_.find(slice.key(), slice.length);  // for its check
    }
    return make_bucket(layout, options_, warming_up ? ahead_ : memories_);
  });
  if (!warming_up) return compressed;
  return buckets_.get(layout, true, step,
                      [&] { return make_bucket(layout::all_dense(layout), options_, memories_); });
}

void ScaleCom::begin_step(std::int64_t step) {
  memories_.forget_aside();
  buckets_.begin_step(step);
}

void ScaleCom::prepare_bucket(const FirstBucket& first) {
  const core::Device device = first.stream.device();
  memories_.use(first.stream);
  bucket_of(first.layout, first.step);
  for (const bool warming_up : {false, true}) {
    Bucket* const bucket = buckets_.find(first.layout, warming_up);
    if (bucket == nullptr) continue;
    const std::int64_t items = bucket->shape().items;
    bucket->reserve(first.ranks);
    if (items == 0) dense_mean_.reserve(first.dtype, first.layout.elements(), device);
    if (items > 0 && narrow()) narrow_mean_.reserve(items, first.rank, first.ranks, device);
  }
}

void ScaleCom::after_replays(std::int64_t steps) {
  buckets_.replayed(steps);
  buckets_.for_each([steps](Bucket& bucket) { bucket.replayed(steps); });
}

void ScaleCom::reduce_bucket(const core::Buffer& grad, const layout::Layout& layout,
                             comm::Communicator& communicator, std::int64_t step,
                             const core::Stream& stream) {
  check_capture(stream);
  const Bucket* const known = buckets_.find(layout, step < options_.warmup);
  check_first(known != nullptr ? known->step() : -1, stream);
  memories_.use(stream);
  Bucket& bucket = bucket_of(layout, step);
  bucket.begin(grad, {communicator.rank(), communicator.size(), step}, stream);
  const float* const mark = std::exchange(mark_, nullptr);
  if (bucket.shape().items > 0) {
    reduce_compressed(bucket, communicator, mark);
  } else {
    if (mark != nullptr) Method::spoil_where(mark, grad, stream);
    reduce_dense(bucket, grad, communicator);
  }
}

// The host cannot look at what a captured step gives, as it has not run.
void ScaleCom::check_capture(const core::Stream& stream) const {
  if (!may_refuse() || !core::cuda::is_capturing(stream)) return;
  throw core::UsageError(core::concat(
      "[", options_.name(),
      "] the stream is being captured, and check=conserve and nonfinite=error look at every step "
      "as it is done; capture with check=none,nonfinite=nan"));
}

void ScaleCom::reduce_compressed(Bucket& bucket, comm::Communicator& communicator,
                                 const float* mark) {
  const Shape& shape = bucket.shape();
  if (checked()) books_.open(bucket, options_.filter());
  bucket.first_pass();
  const bool folded = fold_memories(shape, 1.0F / static_cast<float>(communicator.size()),
                                    bucket.rest().data(), true);
  exchange_offsets(bucket, communicator);
  bucket.take();
  if (checked()) books_.send(bucket);
  if (mark != nullptr) kernels::spoil(mark, &bucket.message().back(), bucket.stream());  // the flag
  const float factor = sum(bucket, communicator);
  bucket.finish(factor, narrow() ? &narrow_mean_ : nullptr);

  // Only these have the host look at what came out.
  if (!checked() && !folded && !options_.nonfinite.is_error()) return;
  const bool sent = bucket.was_sent();
  if (sent && folded) set_aside_folded(shape);
  if (checked()) {
    if (sent && narrow()) books_.give_back(narrow_mean_);
    books_.close(bucket, options_, sent, communicator);
  }
  if (!sent) options_.nonfinite.refuse(options_.name(), bucket.step());
}

void ScaleCom::reduce_dense(Bucket& bucket, const core::Buffer& grad,
                            comm::Communicator& communicator) {
  bool folded = false;
  dense_mean_(grad, communicator, bucket.stream(), [&](float* gradient, float factor) {
    folded = fold_memories(bucket.shape(), factor, gradient, false);
  });
  if (!folded && !options_.nonfinite.is_error()) return;
  if (dense_mean_.is_finite()) {
    set_aside_folded(bucket.shape());
  } else {
    options_.nonfinite.refuse(options_.name(), bucket.step());
  }
}

// Everybody's named entries to everybody.
void ScaleCom::exchange_offsets(Bucket& bucket, comm::Communicator& communicator) {
  if (!options_.sends_offsets()) return;
  if (options_.leaders == Options::kSharded) {
    communicator.all_gather(bucket.own_offsets(), bucket.offsets(), bucket.stream());
  } else {
    communicator.broadcast(bucket.offsets(), bucket.turn().leader(), bucket.stream());
  }
}

// The message becomes its sum; returns what makes a mean of its values. Dense slices were divided
// before.
float ScaleCom::sum(Bucket& bucket, comm::Communicator& communicator) {
  const auto gain = static_cast<float>(options_.gain);
  if (!narrow()) {
    communicator.all_reduce(bucket.message(), bucket.stream());
    return gain / static_cast<float>(communicator.size());
  }
  narrow_mean_(bucket.values(), options_.value_type(), communicator, bucket.stream());
  communicator.all_reduce(bucket.rest(), bucket.stream());
  return gain;
}

// A slice that is dense now and was compressed before sends all that its memory holds. `dense` is
// the fp32 gradient, already scaled by `factor`: the slices one after the other (by_place), or the
// whole bucket. Whether there was any.
bool ScaleCom::fold_memories(const Shape& shape, float factor, float* dense, bool by_place) {
  bool folded = false;
  for (const Shape::DensePart& part : shape.dense_parts) {
    const float* memory = memories_.find(part.name, part.length);
    if (memory == nullptr) continue;
    kernels::elementwise::add_quotient(dense + (by_place ? part.place : part.offset), memory,
                                       part.length, options_.memory_unit(), factor,
                                       memories_.stream());
    folded = true;
  }
  return folded;
}

void ScaleCom::set_aside_folded(const Shape& shape) {
  for (const Shape::DensePart& part : shape.dense_parts) {
    memories_.set_aside(part.name);
    books_.forget(part.name);
  }
}

void ScaleCom::undo() {
  memories_.bring_back();
  buckets_.for_each([this](Bucket& bucket) {
    if (bucket.step() != steps() - 1) return;
    const bool balances = checked() && bucket.was_sent();
    bucket.put_back();
    if (balances) books_.put_back(bucket, options_.filter());
  });
}

void ScaleCom::rescale(float factor) {
  memories_.forget_aside();
  memories_.scale(factor);
  buckets_.for_each([](Bucket& bucket) { bucket.forget_sent(); });
  books_.reset();
}

// What a scaler has decided, only the device knows: the host puts everything on the stream that may
// have to be done. It waits where books or names of memories, which are its own, would change.
void ScaleCom::apply_scale(const LossScale& scale, const core::Stream& stream) {
  if (checked() || memories_.has_aside() || memories_.stream().device() != stream.device()) {
    Method::apply_scale(scale, stream);
    return;
  }
  buckets_.for_each([&](Bucket& bucket) {
    if (bucket.step() == steps() - 1) bucket.put_back(scale.skipped());
  });
  memories_.scale(scale.factor());
}

void ScaleCom::apply(const std::string& settings) {
  const double unit = options_.beta / options_.gain;
  options_.read(core::OptionString::parse(core::concat(options_.name(), ",", settings)));
  memories_.forget_aside();
  ahead_.replace({});
  // What is still to be sent stays.
  const double new_unit = options_.beta / options_.gain;
  if (new_unit != unit) memories_.scale(static_cast<float>(new_unit / unit));
  buckets_.clear();
  books_.reset();
}

void ScaleCom::replace_memories(Memories memories) {
  memories_.replace(std::move(memories));
  ahead_.replace({});
  buckets_.clear();
  books_.reset();
}

comm::Counters ScaleCom::cost(const layout::Layout& layout, int size, int rank,
                              std::int64_t step) const {
  const Shape shape(step < options_.warmup ? layout::all_dense(layout) : layout, options_.select);
  comm::Counters cost;
  if (shape.items == 0) {
    cost[comm::Call::kAllReduce] = comm::all_reduce_traffic(shape.dense_elements, size, rank);
    return cost;
  }
  cost[comm::Call::kAllReduce] =
      comm::all_reduce_traffic((narrow() ? 0 : shape.items) + shape.dense_elements + 1, size, rank);
  if (narrow()) cost += NarrowMean::cost(shape.items, size, rank);
  if (checked()) cost += Conservation::cost(size);
  if (options_.sends_offsets()) cost += offset_cost(shape, options_, {rank, size, step});
  return cost;
}

}  // namespace

std::unique_ptr<Method> make(const core::OptionString& options) {
  return std::make_unique<ScaleCom>(Options::Feedback::kFilter, options);
}

std::string allowed_options() {
  return Options::allowed(Options::Feedback::kFilter);
}

std::unique_ptr<Method> make_weighted(const core::OptionString& options) {
  return std::make_unique<ScaleCom>(Options::Feedback::kWeighted, options);
}

std::string weighted_options() {
  return Options::allowed(Options::Feedback::kWeighted);
}

}  // namespace scalecom::methods::scalecom
