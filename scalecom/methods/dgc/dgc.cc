#include "scalecom/methods/dgc/dgc.h"

#include <numeric>

#include "scalecom/core/error.h"
#include "scalecom/core/text.h"
#include "scalecom/methods/dgc/host_bucket.h"
#include "scalecom/methods/dgc/options.h"
#include "scalecom/methods/sparse/method.h"

namespace scalecom::methods::dgc {
namespace {

class Dgc final : public sparse::ConfiguredMethod<Options> {
 public:
  using ConfiguredMethod::ConfiguredMethod;

  bool brings_momentum() const override { return true; }

 protected:
  std::unique_ptr<sparse::Bucket> make_bucket(const layout::Layout& layout,
                                              MemoryStore& memories) const override {
    if (memories.device().is_cuda()) {
      throw core::UsageError("[dgc] takes gradients in host memory; on a GPU: topk, scalecom");
    }
    return std::make_unique<HostBucket>(layout, options(), memories);
  }

  // What was packed where the step was the last one, and else what the rate asks for.
  comm::Counters exchange_cost(const layout::Layout& layout, int size, int rank,
                               std::int64_t step) const override {
    const sparse::Shape shape(layout);
    if (shape.parts.empty()) return {};
    std::vector<std::int64_t> counts;
    for (const auto& part : shape.parts) counts.push_back(part.keep(options().most_rate(step)));
    std::vector<std::int64_t> bytes(static_cast<std::size_t>(size),
                                    wire::items_bytes(sparse::runs_of(shape, counts)));
    if (const auto* bucket = dynamic_cast<const HostBucket*>(find_bucket(layout));
        bucket != nullptr && bucket->step() == step &&
        bucket->message_bytes().size() == bytes.size()) {
      bytes.assign(bucket->message_bytes().begin(), bucket->message_bytes().end());
    }
    const auto header = static_cast<std::int64_t>(shape.parts.size() * sizeof(std::uint32_t));
    comm::Counters cost;
    cost[comm::Call::kAllGather] =
        comm::all_gather_traffic(header, header * size, size) +
        comm::all_gather_traffic(bytes[static_cast<std::size_t>(rank)],
                                 std::accumulate(bytes.begin(), bytes.end(), std::int64_t{0}),
                                 size);
    return cost;
  }
};

}  // namespace

std::string velocity_name(const std::string& tensor) {
  constexpr const char* kSuffix = "/velocity";
  if (tensor.ends_with(kSuffix)) {
    throw core::UsageError(core::concat("[dgc] a tensor is named '", tensor,
                                        "', which is the name of another one's velocity"));
  }
  return tensor + kSuffix;
}

std::unique_ptr<Method> make(const core::OptionString& options) {
  return std::make_unique<Dgc>(options);
}

std::string allowed_options() {
  return Options().table().allowed();
}

}  // namespace scalecom::methods::dgc
