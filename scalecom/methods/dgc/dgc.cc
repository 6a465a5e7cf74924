#include "scalecom/methods/dgc/dgc.h"

#include "scalecom/core/error.h"
#include "scalecom/core/text.h"
#include "scalecom/methods/dgc/cuda_bucket.h"
#include "scalecom/methods/dgc/host_bucket.h"
#include "scalecom/methods/dgc/options.h"
#include "scalecom/methods/dgc/packed_sizes.h"
#include "scalecom/methods/sparse/method.h"

namespace scalecom::methods::dgc {
namespace {

class Dgc final : public sparse::ConfiguredMethod<Options> {
 public:
  using ConfiguredMethod::ConfiguredMethod;

  bool brings_momentum() const override { return true; }

 protected:
  bool host_looks() const override { return true; }
  std::unique_ptr<sparse::Bucket> make_bucket(const layout::Layout& layout,
                                              MemoryStore& memories) const override {
    if (memories.device().is_cuda()) return make_cuda_bucket(layout, options(), memories);
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
    const sparse::Bucket* bucket = find_bucket(layout);
    const auto* packed = dynamic_cast<const PackedSizes*>(bucket);
    if (packed != nullptr && bucket->step() == step &&
        packed->message_bytes().size() == bytes.size()) {
      bytes.assign(packed->message_bytes().begin(), packed->message_bytes().end());
    }
    comm::Counters cost;
    cost[comm::Call::kAllGather] =
        PackedSizes::traffic(static_cast<std::int64_t>(shape.parts.size()), bytes, rank);
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
