#include "scalecom/methods/powersgd/powersgd.h"

#include <optional>

#include "scalecom/core/cuda/runtime.h"
#include "scalecom/core/error.h"
#include "scalecom/core/hash.h"
#include "scalecom/kernels/elementwise.h"
#include "scalecom/kernels/lowrank_batch.h"
#include "scalecom/methods/buckets.h"
#include "scalecom/methods/dense_mean.h"
#include "scalecom/methods/finite_flag.h"
#include "scalecom/methods/powersgd/factors.h"
#include "scalecom/methods/powersgd/options.h"
#include "scalecom/methods/powersgd/shape.h"

namespace scalecom::methods::powersgd {
namespace {

namespace elementwise = kernels::elementwise;
namespace lowrank = kernels::lowrank;
using lowrank::Job;

/// A bucket of one layout, from step to step.
struct Bucket {
  Bucket(Shape shape, core::Device device) : shape(std::move(shape)) {
    if (this->shape.matrices.empty()) return;  // all dense: summed where it lies
    first = core::Array<float>(device, this->shape.p_elements + this->shape.dense_elements + 1);
    second = core::Array<float>(device, this->shape.q_elements);
  }
  float* dense() { return first.data() + shape.p_elements; }

  Shape shape;
  core::Array<float> first;   // [P of all matrices | dense slices | NaN where not finite]
  core::Array<float> second;  // Q of all matrices
  std::optional<lowrank::Batch> batch;
  std::int64_t step = -1;
};

class PowerSgd final : public Method {
 public:
  explicit PowerSgd(const core::OptionString& options) { options_.read(options); }

  comm::Counters cost(const layout::Layout& layout, int size, int rank,
                      std::int64_t step) const override;
  bool may_refuse() const override { return options_.nonfinite.is_error(); }
  void undo() override { factors_.undo(steps() - 1); }
  void rescale(float factor) override { factors_.scale(factor); }
  std::vector<NamedMemory> memories() const override {
    return factors_.list(options_.warm_start == Options::kOn);
  }

 protected:
  void begin_step(std::int64_t step) override;
  void prepare_bucket(const FirstBucket& first) override;
  void reduce_bucket(const core::Buffer& grad, const layout::Layout& layout,
                     comm::Communicator& communicator, std::int64_t step,
                     const core::Stream& stream) override;
  std::function<void()> way_back() override {
    return [this, factors = factors_, ahead = ahead_, buckets = buckets_] {
      factors_ = factors;
      ahead_ = ahead;
      buckets_ = buckets;
    };
  }
  void after_replays(std::int64_t steps) override;
  std::string spec_text() const override { return "powersgd," + options_.text(); }
  void apply(const std::string& settings) override;
  void replace_memories(Memories memories) override;

 private:
  bool warming_up(std::int64_t step) const { return step < options_.warmup; }
  Shape shape_of(const layout::Layout& layout, std::int64_t step) const {
    return warming_up(step) ? Shape::dense(layout) : Shape(layout, options_.rank);
  }
  Bucket& bucket_of(const layout::Layout& layout, std::int64_t step);
  std::shared_ptr<Bucket> make_bucket(const layout::Layout& layout, Factors& factors) const;
  void reduce_factors(Bucket& bucket, const core::Buffer& grad, comm::Communicator& communicator);
  void reduce_dense(Bucket& bucket, const core::Buffer& grad, comm::Communicator& communicator);
  void check_capture(const core::Stream& stream) const;
  void load_dense(Bucket& bucket, const core::Buffer& grad, float factor);
  void store_dense(Bucket& bucket, const core::Buffer& grad);
  bool fold(const Shape& shape, float factor, float* dense, bool by_place);
  void finish(const Bucket& bucket, bool folded, bool finite);

  Options options_;
  Factors factors_;
  Factors ahead_;  // made in the warm-up for the steps after it
  Buckets<Bucket> buckets_;
  DenseMean dense_mean_;
  FiniteFlag flag_;
  core::Array<float> zero_;
};

// The first step of a warm-up makes room for those after it, too: there all ranks hear of it where
// one has none.
Bucket& PowerSgd::bucket_of(const layout::Layout& layout, std::int64_t step) {
  const bool dense = warming_up(step);
  if (dense) ahead_.use(factors_.stream());
  if (!dense) factors_.take_over(ahead_);
  Bucket& compressed = buckets_.get(layout, false, step, [&] {
    for (const layout::Slice& slice : layout.slices()) factors_.check(slice.name, slice.length);
    return make_bucket(layout, dense ? ahead_ : factors_);
  });
  if (!dense) return compressed;
  return buckets_.get(layout, true, step, [&] {
    return std::make_shared<Bucket>(Shape::dense(layout), factors_.stream().device());
  });
}

std::shared_ptr<Bucket> PowerSgd::make_bucket(const layout::Layout& layout,
                                              Factors& factors) const {
  const core::Stream& stream = factors.stream();
  auto bucket = std::make_shared<Bucket>(Shape(layout, options_.rank), stream.device());
  std::vector<Job> jobs;
  for (const Shape::Matrix& matrix : bucket->shape.matrices) {
    factors.prepare(matrix, options_);
    jobs.push_back(factors.job_of(matrix));
    jobs.back().p = bucket->first.data() + matrix.p_place;
    jobs.back().q = bucket->second.data() + matrix.q_place;
  }
  if (!jobs.empty()) bucket->batch.emplace(std::move(jobs), stream);
  return bucket;
}

void PowerSgd::begin_step(std::int64_t step) {
  factors_.forget_aside();
  buckets_.begin_step(step);
}

void PowerSgd::prepare_bucket(const FirstBucket& first) {
  const core::Device device = first.stream.device();
  factors_.use(first.stream);
  if (bucket_of(first.layout, first.step).shape.matrices.empty()) {
    dense_mean_.reserve(first.dtype, first.layout.elements(), device);
  }
  if (zero_.size() == 0 || zero_.device() != device) zero_ = core::Array<float>(device, 1);
}

void PowerSgd::reduce_bucket(const core::Buffer& grad, const layout::Layout& layout,
                             comm::Communicator& communicator, std::int64_t step,
                             const core::Stream& stream) {
  check_capture(stream);
  const Bucket* const known = buckets_.find(layout, warming_up(step));
  check_first(known != nullptr ? known->step : -1, stream);
  factors_.use(stream);
  Bucket& bucket = bucket_of(layout, step);
  bucket.step = step;
  if (bucket.shape.matrices.empty()) {
    reduce_dense(bucket, grad, communicator);
  } else {
    reduce_factors(bucket, grad, communicator);
  }
}

// The host cannot look at what a captured step gives, nor draw for the steps that it will be.
void PowerSgd::check_capture(const core::Stream& stream) const {
  const bool asks = options_.nonfinite.is_error() || options_.warm_start == Options::kOff;
  if (!asks || !core::cuda::is_capturing(stream)) return;
  throw core::UsageError(
      "[powersgd] the stream is being captured, and nonfinite=error and warm_start=off have the "
      "host take part in every step; capture with nonfinite=nan,warm_start=on");
}

void PowerSgd::after_replays(std::int64_t steps) {
  buckets_.replayed(steps);
  factors_.replayed(steps);
}

void PowerSgd::reduce_factors(Bucket& bucket, const core::Buffer& grad,
                              comm::Communicator& communicator) {
  const core::Stream& stream = factors_.stream();
  const float factor = 1.0F / static_cast<float>(communicator.size());
  lowrank::Batch& batch = *bucket.batch;
  for (const Shape::Matrix& matrix : bucket.shape.matrices) factors_.begin(matrix, bucket.step);
  flag_.clear(stream);
  if (options_.warm_start == Options::kOn) {
    batch.adopt_q(stream);
  } else {
    batch.draw_q(core::combine(static_cast<std::uint64_t>(options_.seed),
                               static_cast<std::uint64_t>(bucket.step)),
                 stream);
  }
  batch.accumulate(grad, flag_.data(), stream);
  load_dense(bucket, grad, factor);
  const bool folded = fold(bucket.shape, factor, bucket.dense(), true);
  // What any rank's bucket holds that is not finite makes the sum of these a NaN at every rank.
  elementwise::store(zero_.data(), 1, bucket.dense() + bucket.shape.dense_elements,
                     core::DType::kFloat32, flag_.data(), stream);
  communicator.all_reduce(bucket.first.span(), stream);
  elementwise::check_finite(bucket.first.data(), bucket.first.size(), flag_.data(), stream);

  batch.orthonormalise_p(stream);
  batch.project(stream);
  communicator.all_reduce(bucket.second.span(), stream);
  batch.average_q(factor, flag_.data(), stream);
  batch.expand(grad, flag_.data(), stream);
  store_dense(bucket, grad);
  if (folded || options_.nonfinite.is_error()) finish(bucket, folded, flag_.is_clear());
}

void PowerSgd::load_dense(Bucket& bucket, const core::Buffer& grad, float factor) {
  for (const Shape::DensePart& part : bucket.shape.dense_parts) {
    elementwise::load(grad.at(part.offset), grad.dtype, part.length, factor,
                      bucket.dense() + part.place, factors_.stream());
  }
}

void PowerSgd::store_dense(Bucket& bucket, const core::Buffer& grad) {
  for (const Shape::DensePart& part : bucket.shape.dense_parts) {
    elementwise::store(bucket.dense() + part.place, part.length, grad.at(part.offset), grad.dtype,
                       flag_.data(), factors_.stream());
  }
}

void PowerSgd::reduce_dense(Bucket& bucket, const core::Buffer& grad,
                            comm::Communicator& communicator) {
  bool folded = false;
  dense_mean_(grad, communicator, factors_.stream(), [&](float* gradient, float factor) {
    folded = fold(bucket.shape, factor, gradient, false);
  });
  if (folded || options_.nonfinite.is_error()) {
    finish(bucket, folded, dense_mean_.is_finite());
  }
}

// A slice that is dense now and had factors before sends all that its memory holds. `dense` is the
// fp32 gradient, already scaled by `factor`: the slices one after the other (by_place), or the
// whole bucket. Whether there was any.
bool PowerSgd::fold(const Shape& shape, float factor, float* dense, bool by_place) {
  bool folded = false;
  for (const Shape::DensePart& part : shape.dense_parts) {
    const float* const memory = factors_.settled(part.name, part.length);
    if (memory == nullptr) continue;
    elementwise::add_quotient(dense + (by_place ? part.place : part.offset), memory, part.length,
                              1.0F, factor, factors_.stream());
    folded = true;
  }
  return folded;
}

// What only some steps have the host look at.
void PowerSgd::finish(const Bucket& bucket, bool folded, bool finite) {
  if (finite && folded) {
    for (const Shape::DensePart& part : bucket.shape.dense_parts) factors_.set_aside(part.name);
  }
  if (!finite) options_.nonfinite.refuse("powersgd", bucket.step);
}

void PowerSgd::apply(const std::string& settings) {
  Options changed = options_;
  changed.read(core::OptionString::parse("powersgd," + settings));
  if (changed.rank != options_.rank || changed.seed != options_.seed ||
      changed.warm_start != options_.warm_start) {
    factors_.forget_q();
  } else {
    factors_.settle();
  }
  options_ = changed;
  ahead_.replace({});
  buckets_.clear();
}

void PowerSgd::replace_memories(Memories memories) {
  factors_.replace(std::move(memories));
  ahead_.replace({});
  buckets_.clear();
}

comm::Counters PowerSgd::cost(const layout::Layout& layout, int size, int rank,
                              std::int64_t step) const {
  const Shape shape = shape_of(layout, step);
  comm::Counters cost;
  if (shape.matrices.empty()) {
    cost[comm::Call::kAllReduce] = comm::all_reduce_traffic(shape.dense_elements, size, rank);
    return cost;
  }
  cost[comm::Call::kAllReduce] =
      comm::all_reduce_traffic(shape.p_elements + shape.dense_elements + 1, size, rank) +
      comm::all_reduce_traffic(shape.q_elements, size, rank);
  return cost;
}

}  // namespace

std::unique_ptr<Method> make(const core::OptionString& options) {
  return std::make_unique<PowerSgd>(options);
}

std::string allowed_options() {
  return Options::allowed();
}

}  // namespace scalecom::methods::powersgd
