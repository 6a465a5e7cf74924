#include "scalecom/methods/half.h"

#include "scalecom/kernels/elementwise.h"
#include "scalecom/methods/finite_flag.h"
#include "scalecom/methods/narrow_mean.h"

namespace scalecom::methods {
namespace {

namespace elementwise = kernels::elementwise;

core::OptionTable table_of(int* values) {
  core::OptionTable table("half");
  table.choice("values", values, {"fp16", "bf16"});
  return table;
}

class Half final : public Method {
 public:
  explicit Half(const core::OptionString& options) { table_of(&values_).read(options.settings); }

  bool divides() const override { return true; }
  comm::Counters cost(const layout::Layout& layout, int size, int rank,
                      std::int64_t /*step*/) const override {
    return NarrowMean::cost(layout.elements(), size, rank);
  }

 protected:
  void prepare_bucket(const FirstBucket& first) override {
    const std::int64_t elements = first.layout.elements();
    make_room(elements, first.stream.device());
    mean_.reserve(elements, first.rank, first.ranks, first.stream.device());
  }
  void reduce_bucket(const core::Buffer& grad, const layout::Layout& /*layout*/,
                     comm::Communicator& communicator, std::int64_t /*step*/,
                     const core::Stream& stream) override {
    const core::DType type = values_ == 0 ? core::DType::kFloat16 : core::DType::kBFloat16;
    make_room(grad.elements, grad.device);
    flag_.clear(stream);
    elementwise::load(grad.data, grad.dtype, grad.elements, 1.0F, wide_.data(), stream);
    mean_({wide_.data(), static_cast<std::size_t>(grad.elements)}, type, communicator, stream);
    elementwise::check_finite(wide_.data(), grad.elements, flag_.data(), stream);
    elementwise::store(wide_.data(), grad.elements, grad.data, grad.dtype, flag_.data(), stream);
  }
  std::string spec_text() const override {
    int values = values_;
    return "half," + table_of(&values).text();
  }
  void apply(const std::string& settings) override {
    table_of(&values_).read(core::OptionString::parse("half," + settings).settings);
  }

 private:
  void make_room(std::int64_t elements, core::Device device) {
    if (wide_.size() < elements || wide_.device() != device) {
      wide_ = core::Array<float>(device, elements);
    }
  }

  int values_ = 0;
  core::Array<float> wide_;
  FiniteFlag flag_;
  NarrowMean mean_;
};

}  // namespace

std::unique_ptr<Method> make_half(const core::OptionString& options) {
  return std::make_unique<Half>(options);
}

std::string half_options() {
  int values = 0;
  return table_of(&values).allowed();
}

}  // namespace scalecom::methods
