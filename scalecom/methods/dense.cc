#include "scalecom/methods/dense.h"

#include "scalecom/methods/dense_mean.h"

namespace scalecom::methods {
namespace {

class Dense final : public Method {
 public:
  bool divides() const override { return true; }
  comm::Counters cost(const layout::Layout& layout, int size, int rank,
                      std::int64_t /*step*/) const override {
    comm::Counters cost;
    cost[comm::Call::kAllReduce] = comm::all_reduce_traffic(layout.elements(), size, rank);
    return cost;
  }

 protected:
  void prepare_bucket(const FirstBucket& first) override {
    mean_.reserve(first.dtype, first.layout.elements(), first.stream.device());
  }
  void reduce_bucket(const core::Buffer& grad, const layout::Layout& /*layout*/,
                     comm::Communicator& communicator, std::int64_t /*step*/,
                     const core::Stream& stream) override {
    mean_(grad, communicator, stream);
  }
  std::string spec_text() const override { return "dense"; }
  void apply(const std::string& settings) override {
    core::OptionTable("dense").read(core::OptionString::parse("dense," + settings).settings);
  }

 private:
  DenseMean mean_;
};

}  // namespace

std::unique_ptr<Method> make_dense(const core::OptionString& options) {
  core::OptionTable("dense").read(options.settings);
  return std::make_unique<Dense>();
}

std::string dense_options() {
  return "none";
}

}  // namespace scalecom::methods
