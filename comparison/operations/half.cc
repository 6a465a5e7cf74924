#include "comparison/operations/methods.h"

namespace comparison::operations {
namespace {

using scalecom::core::DType;

class Half final : public Statement {
 public:
  explicit Half(DType type) : type_(type) {}

  // Rounded on the way to the mean and on the way back.
  void step(std::span<Number> gradient, const scalecom::layout::Layout& /*layout*/,
            std::int64_t /*step*/) override {
    for (Number& value : gradient) value = rounded(type_, value);
    mean_of_dense(gradient);
    for (Number& value : gradient) value = rounded(type_, value);
  }

 private:
  DType type_;
};

}  // namespace

std::unique_ptr<Statement> state_half(const scalecom::core::OptionString& options) {
  const bool fp16 = options.settings.front().second == "fp16";
  return std::make_unique<Half>(fp16 ? DType::kFloat16 : DType::kBFloat16);
}

}  // namespace comparison::operations
