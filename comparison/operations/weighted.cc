#include <algorithm>
#include <vector>

#include "comparison/operations/choice.h"
#include "comparison/operations/methods.h"

namespace comparison::operations {
namespace {

namespace layout = scalecom::layout;
using Options = scalecom::methods::scalecom::Options;

/// u = a*gradient + b*m, over a: what is kept is m/a, and only what is sent is multiplied by a. Of
/// a rank that names the entries, whose work is the most.
class Weighted final : public Statement {
 public:
  explicit Weighted(const Options& options) : options_(options) {}

  void step(std::span<Number> gradient, const layout::Layout& bucket, std::int64_t step) override {
    memory_.resize(gradient.size());
    for (const layout::Slice& slice : bucket.slices()) {
      const auto begin = static_cast<std::size_t>(slice.offset);
      const auto values = gradient.subspan(begin, static_cast<std::size_t>(slice.length));
      if (slice.dense()) {
        mean_of_dense(values);
      } else {
        accumulate(values, memory_.data() + begin);
      }
    }
    const Number gain = static_cast<float>(options_.gain);
    for (const std::size_t i : choose(memory_, bucket, options_, step)) {
      const Number sent = rounded(options_.value_type(), memory_[i]);
      memory_[i] = memory_[i] - sent;
      gradient[i] = sent * gain;
    }
  }

 private:
  /// The memory becomes u, and the gradient 0.
  void accumulate(std::span<Number> gradient, Number* memory) const {
    const Number b = static_cast<float>(options_.decay);
    for (std::size_t i = 0; i < gradient.size(); ++i) {
      memory[i] = gradient[i] + b * memory[i];
      static_cast<void>(is_finite(memory[i]));
      gradient[i] = 0;
    }
  }

  Options options_;
  std::vector<Number> memory_;
};

}  // namespace

std::unique_ptr<Statement> state_weighted(const scalecom::core::OptionString& options) {
  Options read(Options::Feedback::kWeighted);
  read.read(options);
  return std::make_unique<Weighted>(read);
}

}  // namespace comparison::operations
