#include "scalecom/methods/topk/topk.h"

#include "scalecom/methods/sparse/largest_bucket.h"
#include "scalecom/methods/sparse/method.h"
#include "scalecom/methods/topk/bucket.h"

namespace scalecom::methods::topk {
namespace {

struct Options : sparse::Options {
  static constexpr const char* kName = "topk";

  core::OptionTable table() {
    core::OptionTable table(kName);
    declare(table);
    declare_warmup(table);
    return table;
  }
};

class Topk final : public sparse::ConfiguredMethod<Options> {
 public:
  using ConfiguredMethod::ConfiguredMethod;

 protected:
  std::unique_ptr<sparse::Bucket> make_bucket(const layout::Layout& layout,
                                              MemoryStore& memories) const override {
    return memories.device().is_cuda() ? make_cuda_bucket(layout, memories)
                                       : make_host_bucket(layout, memories);
  }
  comm::Counters exchange_cost(const layout::Layout& layout, int size, int /*rank*/,
                               std::int64_t /*step*/) const override {
    const std::int64_t bytes = wire::items_bytes(largest_runs(sparse::Shape(layout)));
    comm::Counters cost;
    cost[comm::Call::kAllGather] = comm::all_gather_traffic(bytes, bytes * size, size);
    return cost;
  }
};

}  // namespace

std::unique_ptr<Method> make(const core::OptionString& options) {
  return std::make_unique<Topk>(options);
}

std::string allowed_options() {
  return Options().table().allowed();
}

}  // namespace scalecom::methods::topk
