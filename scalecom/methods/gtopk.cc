#include "scalecom/methods/gtopk.h"

#include <algorithm>
#include <limits>

#include "scalecom/core/error.h"
#include "scalecom/methods/sparse/largest_bucket.h"
#include "scalecom/methods/sparse/merge.h"
#include "scalecom/methods/sparse/method.h"

namespace scalecom::methods {
namespace {

using sparse::Items;

constexpr int kRoot = 0;

// The tree: in the round of `stride` 1, 2, 4, ... every rank that is an odd multiple of it sends
// what it has to the rank below, and is done.
bool sends(int rank, int stride) {
  return rank % (2 * stride) == stride;
}
bool receives(int rank, int stride, int size) {
  return rank % (2 * stride) == 0 && rank + stride < size;
}

class GtopkBucket final : public sparse::LargestBucket {
 public:
  using LargestBucket::LargestBucket;

  // A step may fail before its exchange: what the last one gave back is not to be undone then.
  void compress() override {
    returned_.clear();
    LargestBucket::compress();
  }

  void exchange(comm::Communicator& communicator) override {
    dropped_.clear();
    if (shape_.parts.empty()) return;
    const int rank = communicator.rank();
    const int size = communicator.size();
    merged_ = taken();
    message_.resize(static_cast<std::size_t>(merged_.bytes()));
    for (int stride = 1; stride < size; stride *= 2) {
      if (sends(rank, stride)) {
        merged_.pack(message_);
        communicator.send(message_, rank - stride);
        break;
      }
      if (receives(rank, stride, size)) {
        communicator.receive(message_, rank + stride);
        take_in();
      }
    }
    if (rank == kRoot) merged_.pack(message_);
    communicator.broadcast(message_, kRoot);
    merged_ = Items(taken().runs);
    merged_.unpack(message_);
  }

 protected:
  bool put_items() override {
    if (!scatter(shape_, grad_, {&merged_, 1}, mean_factor())) return false;
    const std::vector<kernels::Given> result = merged_.by_part();
    // An entry that is not in the result goes back to everybody who sent it.
    give(taken(), [&](std::size_t part, std::uint32_t at) { return !contains(result[part], at); });
    // One that is, but of which this rank dropped a part on its way, has that part stay here:
    // those who sent it cannot know.
    for (const Items& round : dropped_) {
      give(round, [&](std::size_t part, std::uint32_t at) { return contains(result[part], at); });
    }
    return true;
  }
  // Whatever came back lies on top of what was there; an own entry's value is all there was.
  void put_back_items() override {
    for (auto change = returned_.rbegin(); change != returned_.rend(); ++change) {
      *change->entry = change->before;
    }
    returned_.clear();
    LargestBucket::put_back_items();
  }

 private:
  struct Change {
    float* entry;
    float before;
  };

  void take_in() {
    Items theirs(taken().runs);
    theirs.unpack(message_);
    sparse::Merged merged = sparse::merge(merged_, theirs);
    merged_ = std::move(merged.kept);
    dropped_.push_back(std::move(merged.dropped));
  }

  static bool contains(const kernels::Given& entries, std::uint32_t position) {
    return std::binary_search(entries.positions, entries.positions + entries.count, position);
  }

  // The items for which `is_unused(part, position)` are added to the memory, which stays finite.
  template <typename IsUnused>
  void give(const Items& items, const IsUnused& is_unused) {
    constexpr float kLargest = std::numeric_limits<float>::max();
    const std::vector<kernels::Given> parts = items.by_part();
    for (std::size_t part = 0; part < parts.size(); ++part) {
      for (std::int64_t i = 0; i < parts[part].count; ++i) {
        const std::uint32_t position = parts[part].positions[i];
        if (!is_unused(part, position)) continue;
        float* const entry = memory(part) + position;
        returned_.push_back({entry, *entry});
        *entry = std::clamp(*entry + parts[part].values[i], -kLargest, kLargest);
      }
    }
  }

  std::vector<std::byte> message_;
  Items merged_;                  // of this rank and those below it in the tree; at last the result
  std::vector<Items> dropped_;    // by this rank, a round each
  std::vector<Change> returned_;  // to this rank's memory
};

struct GtopkOptions : sparse::Options {
  static constexpr const char* kName = "gtopk";

  core::OptionTable table() {
    core::OptionTable table(kName);
    declare(table);
    declare_warmup(table);
    return table;
  }
};

class Gtopk final : public sparse::ConfiguredMethod<GtopkOptions> {
 public:
  using ConfiguredMethod::ConfiguredMethod;

 protected:
  std::unique_ptr<sparse::Bucket> make_bucket(const layout::Layout& layout,
                                              MemoryStore& memories) const override {
    if (memories.device().is_cuda()) {
      throw core::UsageError(
          "[gtopk] takes gradients in host memory only; on a GPU: topk, dgc, scalecom");
    }
    return std::make_unique<GtopkBucket>(layout, memories);
  }
  comm::Counters exchange_cost(const layout::Layout& layout, int size, int rank,
                               std::int64_t /*step*/) const override {
    const std::int64_t bytes = wire::items_bytes(largest_runs(sparse::Shape(layout)));
    comm::Counters cost;
    for (int stride = 1; stride < size; stride *= 2) {
      if (receives(rank, stride, size)) cost[comm::Call::kSendReceive] += comm::one_call(0, bytes);
      if (!sends(rank, stride)) continue;
      cost[comm::Call::kSendReceive] += comm::one_call(bytes, 0);
      break;
    }
    cost[comm::Call::kBroadcast] = comm::broadcast_traffic(bytes, size, rank, kRoot);
    return cost;
  }
};

}  // namespace

std::unique_ptr<Method> make_gtopk(const core::OptionString& options) {
  return std::make_unique<Gtopk>(options);
}

std::string gtopk_options() {
  return GtopkOptions().table().allowed();
}

}  // namespace scalecom::methods
