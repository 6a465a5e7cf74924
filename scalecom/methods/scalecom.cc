#include "scalecom/methods/scalecom.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <map>
#include <utility>

#include "scalecom/core/error.h"
#include "scalecom/core/hash.h"
#include "scalecom/core/text.h"
#include "scalecom/core/thread_pool.h"
#include "scalecom/kernels/select.h"
#include "scalecom/methods/blocks.h"
#include "scalecom/methods/conservation.h"
#include "scalecom/methods/dense_mean.h"
#include "scalecom/methods/narrow_mean.h"
#include "scalecom/methods/offset_exchange.h"
#include "scalecom/methods/scalecom_bucket.h"
#include "scalecom/methods/scalecom_options.h"

namespace scalecom::methods {
namespace {

using Block = ScaleComBucket::Block;
using Kind = layout::Selection::Kind;

// work(block) for every block, on the pool.
template <typename Work>
void for_each(const std::vector<Block>& blocks, const Work& work) {
  core::parallel_for(static_cast<std::int64_t>(blocks.size()),
                     [&](std::int64_t i) { work(blocks[static_cast<std::size_t>(i)]); });
}

// The chunks of its part that a block is made of: [first, last).
std::pair<std::int64_t, std::int64_t> chunks_of(const Block& block, const layout::Cut& cut) {
  return {block.begin / cut.chunk, (block.end + cut.chunk - 1) / cut.chunk};
}

class ScaleCom final : public Method {
 public:
  explicit ScaleCom(const core::OptionString& options) { options_.read(options); }

  layout::RatePolicy rate_policy() const override { return options_.rates; }
  comm::Counters cost(const layout::Layout& layout, int size, int rank,
                      std::int64_t step) const override;
  void undo() override;
  std::vector<NamedMemory> memories() const override { return memories_.list(); }

 protected:
  void begin_step(std::int64_t step) override;
  void reduce_bucket(const core::Buffer& grad, const layout::Layout& layout,
                     comm::Communicator& communicator, std::int64_t step) override;
  std::string spec_text() const override { return "scalecom," + options_.text(); }
  void apply(const std::string& settings) override;
  void replace_memories(Memories memories) override;

 private:
  bool checked() const { return options_.check == ScaleComOptions::kConserve; }
  ScaleComBucket& bucket_of(const layout::Layout& layout, std::int64_t step);

  void reduce_compressed(ScaleComBucket& bucket, comm::Communicator& communicator);
  bool one_pass(const Block& block) const;
  void draw_entries(ScaleComBucket& bucket);
  bool first_pass(ScaleComBucket& bucket, const ChunkRange& led);
  void name_entries(ScaleComBucket& bucket, const ChunkRange& led, bool leads);
  void take(ScaleComBucket& bucket, const ChunkRange& led);
  bool load_dense(ScaleComBucket& bucket, int ranks);
  bool sum(ScaleComBucket& bucket, comm::Communicator& communicator);
  void settle_rounding(ScaleComBucket& bucket);
  void put(ScaleComBucket& bucket, const ChunkRange& led);
  void refuse(ScaleComBucket& bucket);
  void fold_memory(const BucketShape::DensePart& part, float factor, float* gradient);
  void set_aside_folded(const BucketShape& shape);

  ScaleComOptions options_;
  MemoryStore memories_;
  std::map<std::uint64_t, ScaleComBucket> buckets_;  // by layout, and apart while warming up
  DenseMean dense_mean_;
  NarrowMean narrow_mean_;
  Conservation books_;
};

// The slices of a warm-up step: the same, all dense.
layout::Layout all_dense(const layout::Layout& layout) {
  std::vector<layout::Slice> slices(layout.slices().begin(), layout.slices().end());
  for (layout::Slice& slice : slices) slice.rate = layout::kDense;
  return layout::Layout(std::move(slices));
}

ScaleComBucket& ScaleCom::bucket_of(const layout::Layout& layout, std::int64_t step) {
  const bool warming_up = step < options_.warmup;
  const std::uint64_t key = core::combine(layout.fingerprint(), warming_up ? 1 : 0);
  const auto found = buckets_.find(key);
  if (found != buckets_.end()) return found->second;
  return buckets_
      .try_emplace(key, warming_up ? all_dense(layout) : layout, options_.select, memories_)
      .first->second;
}

// Buckets that the last step did not use belong to an older layout.
void ScaleCom::begin_step(std::int64_t step) {
  memories_.forget_aside();
  std::erase_if(buckets_, [step](const auto& item) { return item.second.step() < step - 1; });
}

void ScaleCom::reduce_bucket(const core::Buffer& grad, const layout::Layout& layout,
                             comm::Communicator& communicator, std::int64_t step) {
  ScaleComBucket& bucket = bucket_of(layout, step);
  bucket.begin(grad, step);
  if (bucket.shape().items > 0) {
    reduce_compressed(bucket, communicator);
    return;
  }
  const auto fold = [&](float* gradient, float factor) {
    for (const BucketShape::DensePart& part : bucket.shape().dense_parts) {
      fold_memory(part, factor, gradient + part.offset);
    }
  };
  if (dense_mean_(grad, communicator, fold)) {
    set_aside_folded(bucket.shape());
  } else {
    refuse(bucket);
  }
}

void ScaleCom::reduce_compressed(ScaleComBucket& bucket, comm::Communicator& communicator) {
  const Turn turn{communicator.rank(), communicator.size(), bucket.step()};
  const ChunkRange led = led_chunks(bucket.shape(), options_, turn);
  if (checked()) books_.open(bucket, options_.filter());
  if (options_.select.kind == Kind::kRandom) draw_entries(bucket);
  bool finite = first_pass(bucket, led);
  name_entries(bucket, led, turn.leads());
  if (options_.sends_offsets()) exchange_offsets(bucket, options_, communicator);
  take(bucket, led);
  finite &= load_dense(bucket, communicator.size());
  if (checked()) books_.send(bucket);
  bucket.rest().back() = finite ? 0.0F : 1.0F;
  bucket.mark_sent();
  const bool sent = sum(bucket, communicator);
  if (sent) {
    settle_rounding(bucket);
    put(bucket, led);
    set_aside_folded(bucket.shape());
  } else {
    bucket.put_back();
  }
  if (checked()) books_.close(bucket, options_.filter(), sent, communicator);
  if (!sent) refuse(bucket);
}

// Whether the first pass does all of a block: the leader's own, where the largest of each chunk is
// wanted, and those whose entries are known beforehand. Then the gradient is 0 after it.
bool ScaleCom::one_pass(const Block& block) const {
  return options_.select.kind == Kind::kRandom ||
         (options_.select.kind == Kind::kLargest && block.led);
}

// Brings the memories up to date, and does all of the blocks that need only one pass. Returns
// whether all was finite.
bool ScaleCom::first_pass(ScaleComBucket& bucket, const ChunkRange& led) {
  const kernels::Table& table = kernels::table();
  const kernels::Filter filter = options_.filter();
  const core::DType values = options_.value_type();
  std::atomic<bool> finite{true};
  for_each(bucket.blocks(led), [&](const Block& block) {
    const kernels::Tensor& tensor = bucket.tensors()[block.part];
    const BucketShape::Part& part = bucket.shape().parts[block.part];
    bool fine = true;
    if (!one_pass(block)) {
      fine = table.accumulate(tensor, filter, block.begin, block.end);
    } else if (block.led) {
      const auto [first, last] = chunks_of(block, part.cut);
      fine = table.lead(tensor, filter, values, part.cut.chunk, first, last,
                        bucket.taken(part.first_item));
    } else {
      fine = table.follow(tensor, filter, values, block.begin, block.end, block.items(),
                          bucket.taken(block.first_item));
    }
    if (!fine) finite.store(false, std::memory_order_relaxed);
  });
  return finite;
}

// The same draw at every rank. A tensor's depends on its name, not on its bucket.
void ScaleCom::draw_entries(ScaleComBucket& bucket) {
  const std::uint64_t seed = core::combine(static_cast<std::uint64_t>(options_.seed),
                                           static_cast<std::uint64_t>(bucket.step()));
  for_each(bucket.blocks({}), [&](const Block& block) {
    const BucketShape::Part& part = bucket.shape().parts[block.part];
    const auto [first, last] = chunks_of(block, part.cut);
    kernels::select_random(core::combine(seed, core::hash(part.name)), part.cut, first, last,
                           bucket.taken(part.first_item).positions);
  });
}

// The selections that the first pass could not make.
void ScaleCom::name_entries(ScaleComBucket& bucket, const ChunkRange& led, bool leads) {
  const BucketShape& shape = bucket.shape();
  if (options_.select.kind == Kind::kExact && leads) {
    std::vector<std::int64_t> counts(shape.parts.size(), 0);
    kernels::select_exact(bucket.tensors(), options_.filter(), shape.items,
                          bucket.taken(0).positions, counts.data());
    bucket.set_items(counts);
  }
  if (options_.select.kind != Kind::kTop) return;
  for_each(bucket.blocks(led), [&](const Block& block) {
    if (!block.led) return;
    const BucketShape::Part& part = shape.parts[block.part];
    const auto [first, last] = chunks_of(block, part.cut);
    kernels::select_top(bucket.tensors()[block.part], options_.filter(), part.cut, first, last,
                        bucket.taken(part.first_item).positions);
  });
}

// The named entries go from the memory into the message, but for those that the first pass took.
void ScaleCom::take(ScaleComBucket& bucket, const ChunkRange& led) {
  const std::vector<Block>& blocks = bucket.blocks(led);
  if (std::all_of(blocks.begin(), blocks.end(), [this](const Block& b) { return one_pass(b); })) {
    return;
  }
  for_each(blocks, [&](const Block& block) {
    if (one_pass(block)) return;
    kernels::table().take(bucket.tensors()[block.part], options_.filter(), options_.value_type(),
                          block.items(), bucket.taken(block.first_item));
  });
}

bool ScaleCom::load_dense(ScaleComBucket& bucket, int ranks) {
  bool finite = true;
  const float factor = 1.0F / static_cast<float>(ranks);
  for (const BucketShape::DensePart& part : bucket.shape().dense_parts) {
    float* place = bucket.rest().data() + part.place;
    finite &= kernels::table().load(element(bucket.grad(), part.offset), bucket.grad().dtype,
                                    part.length, factor, place);
    fold_memory(part, factor, place);
  }
  return finite;
}

// The message becomes its mean. Returns whether every rank's bucket, and every sum, was finite:
// all ranks see the same bits, so all give the same answer.
bool ScaleCom::sum(ScaleComBucket& bucket, comm::Communicator& communicator) {
  const std::span<float> values = bucket.values();
  const std::span<float> rest = bucket.rest();
  float factor = 1.0F;
  if (options_.value_type() == core::DType::kFloat32) {
    communicator.all_reduce(bucket.message());
    factor = 1.0F / static_cast<float>(communicator.size());
  } else {
    narrow_mean_(values, options_.value_type(), communicator);
    communicator.all_reduce(rest);
  }
  const bool values_finite = all_finite(values, factor);
  const bool rest_finite = all_finite(rest, 1.0F);
  return values_finite && rest_finite && rest.back() == 0.0F;
}

// What rounding the mean to 16 bits took from the sum goes back to the memory of the rank that
// rounded it.
void ScaleCom::settle_rounding(ScaleComBucket& bucket) {
  if (options_.value_type() == core::DType::kFloat32) return;
  const comm::Share owned = narrow_mean_.owned();
  const float beta = options_.filter().beta;
  for (std::size_t part = 0; part < bucket.tensors().size(); ++part) {
    const std::int64_t end = bucket.first_item(part) + bucket.items(part);
    const std::int64_t first = std::max(owned.begin, bucket.first_item(part));
    for (std::int64_t item = first; item < std::min(owned.end, end); ++item) {
      float& memory = bucket.tensors()[part].memory[*bucket.taken(item).positions];
      memory = std::fma(beta, narrow_mean_.rounding()[item - owned.begin], memory);
    }
  }
  if (checked()) books_.give_back(owned.begin, owned.size(), narrow_mean_.rounding());
}

void ScaleCom::put(ScaleComBucket& bucket, const ChunkRange& led) {
  const kernels::Table& table = kernels::table();
  for_each(bucket.blocks(led), [&](const Block& block) {
    const kernels::Tensor& tensor = bucket.tensors()[block.part];
    const kernels::Taken taken = bucket.taken(block.first_item);
    if (one_pass(block)) {
      table.put(tensor, block.items(), taken.positions, taken.values);
    } else {
      table.zero_and_put(tensor, block.begin, block.end, block.items(), taken.positions,
                         taken.values);
    }
  });
  for (const BucketShape::DensePart& part : bucket.shape().dense_parts) {
    table.store(bucket.rest().data() + part.place, part.length, 1.0F,
                element(bucket.grad(), part.offset), bucket.grad().dtype);
  }
}

// Some rank's bucket held a NaN or Inf, or the sum does.
void ScaleCom::refuse(ScaleComBucket& bucket) {
  fill_nan(bucket.grad());
  if (options_.nonfinite == ScaleComOptions::kError) {
    throw core::CheckError(core::concat("[scalecom] step ", bucket.step(),
                                        ": a gradient of some rank is not finite; nothing was "
                                        "sent, and what is finite stays in the memories"));
  }
}

// A slice that is dense now and was compressed before sends all that its memory holds. `gradient`
// is its fp32 gradient, already scaled by `factor`.
void ScaleCom::fold_memory(const BucketShape::DensePart& part, float factor, float* gradient) {
  const float* memory = memories_.find(part.name, part.length);
  if (memory == nullptr) return;
  const float beta = options_.filter().beta;
  for (std::int64_t i = 0; i < part.length; ++i) gradient[i] += memory[i] / beta * factor;
}

void ScaleCom::set_aside_folded(const BucketShape& shape) {
  for (const BucketShape::DensePart& part : shape.dense_parts) {
    memories_.set_aside(part.name);
    books_.forget(part.name);
  }
}

void ScaleCom::undo() {
  memories_.bring_back();
  for (auto& [key, bucket] : buckets_) {
    if (bucket.step() != steps() - 1 || !bucket.was_sent()) continue;
    bucket.put_back();
    if (checked()) books_.put_back(bucket, options_.filter());
  }
}

void ScaleCom::apply(const std::string& settings) {
  const double beta = options_.beta;
  options_.read(core::OptionString::parse("scalecom," + settings));
  // m / beta, what is still to be sent, stays.
  if (options_.beta != beta) memories_.scale(static_cast<float>(options_.beta / beta));
  buckets_.clear();
  books_.reset();
}

void ScaleCom::replace_memories(Memories memories) {
  memories_.replace(std::move(memories));
  buckets_.clear();
  books_.reset();
}

comm::Counters ScaleCom::cost(const layout::Layout& layout, int size, int rank,
                              std::int64_t step) const {
  const BucketShape shape(step < options_.warmup ? all_dense(layout) : layout, options_.select);
  comm::Counters cost;
  if (shape.items == 0) {
    cost[comm::Call::kAllReduce] = comm::all_reduce_traffic(shape.dense_elements, size, rank);
    return cost;
  }
  const bool narrow = options_.value_type() != core::DType::kFloat32;
  cost[comm::Call::kAllReduce] =
      comm::all_reduce_traffic((narrow ? 0 : shape.items) + shape.dense_elements + 1, size, rank);
  if (narrow) cost += NarrowMean::cost(shape.items, size, rank);
  if (checked()) cost += Conservation::cost(size);
  if (options_.sends_offsets()) cost += offset_cost(shape, options_, {rank, size, step});
  return cost;
}

}  // namespace

std::unique_ptr<Method> make_scalecom(const core::OptionString& options) {
  return std::make_unique<ScaleCom>(options);
}

std::string scalecom_options() {
  return ScaleComOptions::allowed();
}

}  // namespace scalecom::methods
