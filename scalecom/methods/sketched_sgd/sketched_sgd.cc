#include "scalecom/methods/sketched_sgd/sketched_sgd.h"

#include <string_view>

#include "scalecom/core/error.h"
#include "scalecom/core/text.h"
#include "scalecom/methods/buckets.h"
#include "scalecom/methods/sketched_sgd/bucket.h"
#include "scalecom/methods/sketched_sgd/options.h"

namespace scalecom::methods::sketched_sgd {
namespace {

constexpr std::string_view kSuffix = "/velocity";  // of the names under which velocities are saved

void check_name(const std::string& tensor) {
  if (!tensor.ends_with(kSuffix)) return;
  throw core::UsageError(core::concat("[sketched_sgd] a tensor is named '", tensor,
                                      "', which is the name of another one's velocity"));
}

class SketchedSgd final : public Method {
 public:
  explicit SketchedSgd(const core::OptionString& options) { options_.read(options); }

  layout::RatePolicy rate_policy() const override { return options_.rates; }
  bool brings_momentum() const override { return options_.momentum > 0; }
  comm::Counters cost(const layout::Layout& layout, int size, int rank,
                      std::int64_t step) const override;
  bool may_refuse() const override { return options_.nonfinite.is_error(); }
  void undo() override;
  void rescale(float factor) override;
  std::vector<NamedMemory> memories() const override;

 protected:
  void begin_step(std::int64_t step) override;
  void prepare_bucket(const FirstBucket& first) override;
  void reduce_bucket(const core::Buffer& grad, const layout::Layout& layout,
                     comm::Communicator& communicator, std::int64_t step,
                     const core::Stream& stream) override;
  std::function<void()> way_back() override {
    return [this, memories = memories_, velocities = velocities_, buckets = buckets_] {
      memories_ = memories;
      velocities_ = velocities;
      buckets_ = buckets;
    };
  }
  std::string spec_text() const override { return "sketched_sgd," + options_.text(); }
  void apply(const std::string& settings) override;
  void replace_memories(Memories memories) override;

 private:
  Bucket& bucket_of(const layout::Layout& layout, std::int64_t step);
  bool exchange(Bucket& bucket, const core::Buffer& grad, comm::Communicator& communicator);

  Options options_;
  MemoryStore memories_;    // v
  MemoryStore velocities_;  // u
  Buckets<Bucket> buckets_;
};

Bucket& SketchedSgd::bucket_of(const layout::Layout& layout, std::int64_t step) {
  return buckets_.get(layout, false, step, [&] {
    for (const layout::Slice& slice : layout.slices()) check_name(slice.name);
    return std::make_shared<Bucket>(layout, options_, memories_, velocities_);
  });
}

void SketchedSgd::begin_step(std::int64_t step) {
  memories_.forget_aside();
  buckets_.begin_step(step);
}

void SketchedSgd::prepare_bucket(const FirstBucket& first) {
  require_host("sketched_sgd", first.stream.device());
  bucket_of(first.layout, first.step);
}

void SketchedSgd::reduce_bucket(const core::Buffer& grad, const layout::Layout& layout,
                                comm::Communicator& communicator, std::int64_t step,
                                const core::Stream& /*stream*/) {
  Bucket& bucket = bucket_of(layout, step);
  bucket.step = step;
  const bool finite = exchange(bucket, grad, communicator);
  if (finite) {
    bucket.dense().set_aside(memories_);
  } else {
    bucket.put_back();
    spoil(grad);
    options_.nonfinite.refuse("sketched_sgd", step);
  }
}

// False where something is not finite, at every rank alike.
bool SketchedSgd::exchange(Bucket& bucket, const core::Buffer& grad,
                           comm::Communicator& communicator) {
  const float factor = 1.0F / static_cast<float>(communicator.size());
  bucket.accumulate(grad, factor, memories_);
  communicator.all_reduce(bucket.first());
  if (!bucket.choose()) return false;
  if (!bucket.second().empty()) communicator.all_reduce(bucket.second());
  return bucket.finish(grad, factor);
}

void SketchedSgd::undo() {
  memories_.bring_back();
  buckets_.for_each([this](Bucket& bucket) {
    if (bucket.step == steps() - 1) bucket.put_back();
  });
}

void SketchedSgd::rescale(float factor) {
  memories_.forget_aside();
  memories_.scale(factor);
  velocities_.scale(factor);
  buckets_.for_each([](Bucket& bucket) { bucket.forget_sent(); });
}

std::vector<NamedMemory> SketchedSgd::memories() const {
  std::vector<NamedMemory> all = memories_.list();
  for (NamedMemory& velocity : velocities_.list()) {
    all.push_back({core::concat(velocity.name, kSuffix), velocity.values});
  }
  return all;
}

void SketchedSgd::replace_memories(Memories memories) {
  Memories velocities;
  for (auto at = memories.begin(); at != memories.end();) {
    const auto next = std::next(at);
    if (at->first.ends_with(kSuffix)) {
      velocities.emplace(at->first.substr(0, at->first.size() - kSuffix.size()),
                         std::move(at->second));
      memories.erase(at);
    }
    at = next;
  }
  memories_.replace(std::move(memories));
  velocities_.replace(std::move(velocities));
  buckets_.clear();
}

void SketchedSgd::apply(const std::string& settings) {
  options_.read(core::OptionString::parse("sketched_sgd," + settings));
  memories_.forget_aside();
  if (options_.momentum == 0) velocities_.replace({});
  buckets_.clear();
}

comm::Counters SketchedSgd::cost(const layout::Layout& layout, int size, int rank,
                                 std::int64_t /*step*/) const {
  const Sizes sizes(layout, options_);
  comm::Counters cost;
  cost[comm::Call::kAllReduce] = comm::all_reduce_traffic(sizes.first_message(), size, rank);
  if (sizes.candidates > 0) {
    cost[comm::Call::kAllReduce] += comm::all_reduce_traffic(sizes.candidates, size, rank);
  }
  return cost;
}

}  // namespace

std::unique_ptr<Method> make(const core::OptionString& options) {
  return std::make_unique<SketchedSgd>(options);
}

std::string allowed_options() {
  return Options::allowed();
}

}  // namespace scalecom::methods::sketched_sgd
