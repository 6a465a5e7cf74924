#include <vector>

#include "comparison/operations/largest.h"
#include "comparison/operations/methods.h"
#include "scalecom/methods/sparse/shape.h"

namespace comparison::operations {
namespace {

using scalecom::methods::sparse::Shape;

class TopK final : public Statement {
 public:
  void step(std::span<Number> gradient, const scalecom::layout::Layout& bucket,
            std::int64_t /*step*/) override {
    memory_.resize(gradient.size());
    const Shape shape(bucket);
    for (const Shape::DensePart& part : shape.dense_parts) {
      mean_of_dense(gradient.subspan(static_cast<std::size_t>(part.offset),
                                     static_cast<std::size_t>(part.length)));
    }
    for (const Shape::Part& part : shape.parts) {
      reduce(gradient.subspan(static_cast<std::size_t>(part.offset),
                              static_cast<std::size_t>(part.length)),
             memory_.data() + part.offset, part.keep());
    }
  }

 private:
  /// `values` become what is sent of them.
  static void reduce(std::span<Number> values, Number* memory, std::int64_t keep) {
    std::vector<Candidate> among;
    for (std::size_t i = 0; i < values.size(); ++i) {
      memory[i] = memory[i] + values[i];
      static_cast<void>(is_finite(memory[i]));
      among.push_back({abs(memory[i]), i});
      values[i] = 0;
    }
    keep_largest(among, keep);
    for (const Candidate& one : among) add_to_mean(values[one.at], memory[one.at]);
  }

  std::vector<Number> memory_;
};

}  // namespace

void add_to_mean(Number& mean, Number& sent) {
  const Number factor = 1;
  mean = mean + sent * factor;
  static_cast<void>(is_finite(mean));
  sent = 0;
}

std::unique_ptr<Statement> state_topk(const scalecom::core::OptionString& /*options*/) {
  return std::make_unique<TopK>();
}

}  // namespace comparison::operations
