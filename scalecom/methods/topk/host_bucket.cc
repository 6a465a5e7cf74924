#include "scalecom/methods/sparse/largest_bucket.h"
#include "scalecom/methods/topk/bucket.h"

namespace scalecom::methods::topk {
namespace {

using sparse::Items;

class HostBucket final : public sparse::LargestBucket {
 public:
  using LargestBucket::LargestBucket;

  void reserve(core::DType /*dtype*/, int ranks, const core::Stream& /*stream*/) override {
    if (shape_.parts.empty()) return;
    const auto count = static_cast<std::size_t>(ranks);
    messages_.resize(static_cast<std::size_t>(taken().bytes()) * count);
    arrived_.resize(count, Items(taken().runs));
  }

  void exchange(comm::Communicator& communicator) override {
    if (shape_.parts.empty()) return;
    const auto bytes = static_cast<std::size_t>(taken().bytes());
    const auto message = [&](std::size_t rank) {
      return std::span(messages_).subspan(rank * bytes, bytes);
    };
    const auto own = message(static_cast<std::size_t>(communicator.rank()));
    taken().pack(own);
    communicator.all_gather(own, messages_);
    for (std::size_t rank = 0; rank < arrived_.size(); ++rank) arrived_[rank].unpack(message(rank));
  }

 protected:
  bool put_items() override { return scatter(shape_, grad_, arrived_, mean_factor()); }

 private:
  std::vector<std::byte> messages_;  // of all ranks
  std::vector<Items> arrived_;
};

}  // namespace

std::unique_ptr<sparse::Bucket> make_host_bucket(const layout::Layout& layout,
                                                 MemoryStore& memories) {
  return std::make_unique<HostBucket>(layout, memories);
}

}  // namespace scalecom::methods::topk
