#include "scalecom/methods/scalecom/host/bucket.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <tuple>

#include "scalecom/core/hash.h"
#include "scalecom/kernels/elementwise.h"
#include "scalecom/kernels/select.h"
#include "scalecom/methods/scalecom/host/blocks.h"
#include "scalecom/methods/scalecom/host/offsets.h"

namespace scalecom::methods::scalecom::host {
namespace {

using Kind = layout::Selection::Kind;

class HostBucket final : public Bucket {
 public:
  HostBucket(const layout::Layout& layout, const Options& options, MemoryStore& memories);

  void first_pass() override;
  void take() override;
  void finish(float factor, const NarrowMean* narrow) override;
  bool was_sent() override { return sent_; }
  void put_back(const std::int32_t* condition) override;
  void forget_sent() override { sent_ = false; }
  View view() override;

 protected:
  void on_begin() override;

 private:
  bool one_pass(const Block& block) const;
  void draw_entries();
  bool update_memories();
  void name_entries();
  bool load_dense();
  bool all_finite(float factor);
  void settle_rounding(const NarrowMean& narrow);
  void put();

  // The items from `first_item` on: an array each, as kernels take them.
  kernels::Taken taken(std::int64_t first_item) {
    return {positions_.data() + first_item, message_.data() + first_item,
            before_.data() + first_item};
  }
  std::vector<Block> blocks() const {
    return shape_.exact ? cut_into_blocks(shape_, first_items_, positions_.data())
                        : cut_into_blocks(shape_, led());
  }

  std::vector<kernels::Tensor> tensors_;   // of each of the shape's parts
  std::vector<std::int64_t> first_items_;  // the shape's, or what was selected last
  bool sent_ = false;
};

HostBucket::HostBucket(const layout::Layout& layout, const Options& options, MemoryStore& memories)
    : Bucket(layout, options, {}) {
  for (const Shape::Part& part : shape_.parts) {
    tensors_.push_back(
        {nullptr, core::DType::kFloat32, memories.of(part.name, part.length), part.length});
    first_items_.push_back(part.first_item);
  }
  first_items_.push_back(shape_.items);
}

void HostBucket::on_begin() {
  sent_ = false;
  for (std::size_t i = 0; i < tensors_.size(); ++i) {
    tensors_[i].grad = grad_.at(shape_.parts[i].offset);
    tensors_[i].dtype = grad_.dtype;
  }
}

void HostBucket::first_pass() {
  if (options_.select.kind == Kind::kRandom) draw_entries();
  bool finite = update_memories();
  name_entries();
  if (options_.sends_offsets()) {
    if (!shape_.exact) {
      pack(shape_, led(), positions_.data(), own_offsets());
    } else if (turn_.leads()) {
      pack_exact(shape_, first_items_, positions_.data(), own_offsets());
    }
  }
  finite &= load_dense();
  rest().back() = finite ? 0.0F : 1.0F;
}

// Whether the first pass does all of a block: the leader's own, where the largest of each chunk is
// wanted, and those whose entries are known beforehand. Then the gradient is 0 after it.
bool HostBucket::one_pass(const Block& block) const {
  return options_.select.kind == Kind::kRandom ||
         (options_.select.kind == Kind::kLargest && block.led);
}

// The same draw at every rank. A tensor's depends on its name, not on its bucket or division.
void HostBucket::draw_entries() {
  const std::uint64_t seed =
      core::combine(static_cast<std::uint64_t>(options_.seed), static_cast<std::uint64_t>(step()));
  for_each(blocks(), [&](const Block& block) {
    const Shape::Part& part = shape_.parts[block.part];
    const auto [first, last] = block.chunks(part.cut);
    kernels::select_random(core::combine(seed, core::hash(part.tensor)), part.chunks_before,
                           part.cut, first, last, taken(part.first_item).positions);
  });
}

// Brings the memories up to date, and does all of the blocks that need only one pass. Returns
// whether all was finite.
bool HostBucket::update_memories() {
  const kernels::Table& table = kernels::table();
  const kernels::Filter filter = options_.filter();
  const core::DType values = options_.value_type();
  std::atomic<bool> finite{true};
  for_each(blocks(), [&](const Block& block) {
    const kernels::Tensor& tensor = tensors_[block.part];
    const Shape::Part& part = shape_.parts[block.part];
    bool fine = true;
    if (!one_pass(block)) {
      fine = table.accumulate(tensor, filter, block.begin, block.end);
    } else if (block.led) {
      const auto [first, last] = block.chunks(part.cut);
      fine =
          table.lead(tensor, filter, values, part.cut.chunk, first, last, taken(part.first_item));
    } else {
      fine = table.follow(tensor, filter, values, block.begin, block.end, block.items(),
                          taken(block.first_item));
    }
    if (!fine) finite.store(false, std::memory_order_relaxed);
  });
  return finite;
}

// The selections that the first pass could not make.
void HostBucket::name_entries() {
  if (options_.select.kind == Kind::kExact && turn_.leads()) {
    std::vector<std::int64_t> counts(shape_.parts.size(), 0);
    kernels::select_exact(tensors_, options_.filter(), shape_.items, positions_.data(),
                          counts.data());
    for (std::size_t i = 0; i < counts.size(); ++i) {
      first_items_[i + 1] = first_items_[i] + counts[i];
    }
  }
  if (options_.select.kind != Kind::kTop) return;
  for_each(blocks(), [&](const Block& block) {
    if (!block.led) return;
    const Shape::Part& part = shape_.parts[block.part];
    const auto [first, last] = block.chunks(part.cut);
    kernels::select_top(tensors_[block.part], options_.filter(), part.cut, first, last,
                        taken(part.first_item).positions);
  });
}

bool HostBucket::load_dense() {
  bool finite = true;
  const float factor = 1.0F / static_cast<float>(turn_.size);
  for (const Shape::DensePart& part : shape_.dense_parts) {
    finite &= kernels::table().load(grad_.at(part.offset), grad_.dtype, part.length, factor,
                                    rest().data() + part.place);
  }
  return finite;
}

// The named entries go from the memory into the message, but for those that the first pass took.
void HostBucket::take() {
  if (options_.sends_offsets()) {
    if (sharded()) {
      for (int rank = 0; rank < turn_.size; ++rank) {
        if (rank != turn_.rank) unpack(shape_, led_by(rank), slot(rank), positions_.data());
      }
    } else if (!turn_.leads() && shape_.exact) {
      unpack_exact(shape_, offsets(), positions_.data(), first_items_);
    } else if (!turn_.leads()) {
      unpack(shape_, shape_.whole(), offsets(), positions_.data());
    }
  }
  sent_ = true;
  const std::vector<Block> all = blocks();
  if (std::all_of(all.begin(), all.end(), [this](const Block& b) { return one_pass(b); })) return;
  for_each(all, [&](const Block& block) {
    if (one_pass(block)) return;
    kernels::table().take(tensors_[block.part], options_.filter(), options_.value_type(),
                          block.items(), taken(block.first_item));
  });
}

// All ranks see the same bits, so all go the same way.
void HostBucket::finish(float factor, const NarrowMean* narrow) {
  if (all_finite(factor)) {
    if (narrow != nullptr) settle_rounding(*narrow);
    put();
    return;
  }
  put_back(nullptr);
  const kernels::elementwise::Flag refused = 1;
  kernels::elementwise::store(nullptr, grad_.elements, grad_.data, grad_.dtype, &refused, {});
}

// Values become means. Whether every rank's bucket, and every sum, was finite.
bool HostBucket::all_finite(float factor) {
  constexpr std::int64_t kPiece = 65'536;
  std::atomic<bool> finite{true};
  core::parallel_for((message_.size() + kPiece - 1) / kPiece, [&](std::int64_t piece) {
    // Times 1 where it is not a value: the rest was divided before.
    for (const auto& [begin, end, times] : {std::tuple(std::int64_t{0}, shape_.items, factor),
                                            std::tuple(shape_.items, message_.size(), 1.0F)}) {
      const std::int64_t first = std::max(begin, piece * kPiece);
      const std::int64_t last = std::min(end, (piece + 1) * kPiece);
      if (first >= last) continue;
      float* const part = message_.data() + first;
      if (!kernels::table().load(part, core::DType::kFloat32, last - first, times, part)) {
        finite.store(false, std::memory_order_relaxed);
      }
    }
  });
  return finite && rest().back() == 0.0F;
}

// What rounding the mean to 16 bits took from the sum goes back to the memory of the rank that
// rounded it.
void HostBucket::settle_rounding(const NarrowMean& narrow) {
  const comm::Share owned = narrow.owned();
  const float beta = options_.filter().beta;
  for (std::size_t part = 0; part < tensors_.size(); ++part) {
    const std::int64_t first = std::max(owned.begin, first_items_[part]);
    const std::int64_t last = std::min(owned.end, first_items_[part + 1]);
    for (std::int64_t item = first; item < last; ++item) {
      float& memory = tensors_[part].memory[positions_.data()[item]];
      memory = std::fma(beta, narrow.rounding()[item - owned.begin], memory);
    }
  }
}

void HostBucket::put() {
  const kernels::Table& table = kernels::table();
  for_each(blocks(), [&](const Block& block) {
    const kernels::Tensor& tensor = tensors_[block.part];
    const kernels::Taken items = taken(block.first_item);
    if (one_pass(block)) {
      table.put(tensor, block.items(), items.positions, items.values);
    } else {
      table.zero_and_put(tensor, block.begin, block.end, block.items(), items.positions,
                         items.values);
    }
  });
  for (const Shape::DensePart& part : shape_.dense_parts) {
    table.store(rest().data() + part.place, part.length, 1.0F, grad_.at(part.offset), grad_.dtype);
  }
}

void HostBucket::put_back(const std::int32_t* condition) {
  if (condition != nullptr && *condition == 0) return;
  if (!sent_) return;
  for (std::size_t part = 0; part < tensors_.size(); ++part) {
    for (std::int64_t i = first_items_[part]; i < first_items_[part + 1]; ++i) {
      tensors_[part].memory[positions_.data()[i]] = before_.data()[i];
    }
  }
  sent_ = false;
}

Bucket::View HostBucket::view() {
  return {tensors_, first_items_, positions_.data(), values()};
}

}  // namespace

std::unique_ptr<Bucket> make_bucket(const layout::Layout& layout, const Options& options,
                                    MemoryStore& memories) {
  return std::make_unique<HostBucket>(layout, options, memories);
}

}  // namespace scalecom::methods::scalecom::host
