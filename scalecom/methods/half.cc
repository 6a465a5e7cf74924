#include "scalecom/methods/half.h"

#include "scalecom/kernels/kernels.h"
#include "scalecom/methods/blocks.h"
#include "scalecom/methods/dense_mean.h"
#include "scalecom/methods/narrow_mean.h"

namespace scalecom::methods {
namespace {

core::OptionTable table_of(int* values) {
  core::OptionTable table("half");
  table.choice("values", values, {"fp16", "bf16"});
  return table;
}

class Half final : public Method {
 public:
  explicit Half(const core::OptionString& options) { table_of(&values_).read(options.settings); }

  comm::Counters cost(const layout::Layout& layout, int size, int rank,
                      std::int64_t /*step*/) const override {
    return NarrowMean::cost(layout.elements(), size, rank);
  }

 protected:
  void reduce_bucket(const core::Buffer& grad, const layout::Layout& /*layout*/,
                     comm::Communicator& communicator, std::int64_t /*step*/) override {
    const kernels::Table& table = kernels::table();
    const core::DType type = values_ == 0 ? core::DType::kFloat16 : core::DType::kBFloat16;
    if (wide_.size() < grad.elements) wide_ = core::AlignedArray<float>(grad.elements);
    for_each_block(grad.elements, [&](std::int64_t begin, std::int64_t end) {
      table.load(element(grad, begin), grad.dtype, end - begin, 1.0F, wide_.data() + begin);
    });
    const std::span<float> wide(wide_.data(), static_cast<std::size_t>(grad.elements));
    mean_(wide, type, communicator);
    if (!all_finite(wide, 1.0F)) {
      fill_nan(grad);
      return;
    }
    for_each_block(grad.elements, [&](std::int64_t begin, std::int64_t end) {
      table.store(wide_.data() + begin, end - begin, 1.0F, element(grad, begin), grad.dtype);
    });
  }
  std::string spec_text() const override {
    int values = values_;
    return "half," + table_of(&values).text();
  }
  void apply(const std::string& settings) override {
    table_of(&values_).read(core::OptionString::parse("half," + settings).settings);
  }

 private:
  int values_ = 0;
  core::AlignedArray<float> wide_;
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
