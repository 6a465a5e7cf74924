#include <algorithm>
#include <vector>

#include "comparison/operations/choice.h"
#include "comparison/operations/methods.h"

namespace comparison::operations {
namespace {

namespace core = scalecom::core;
namespace layout = scalecom::layout;
using Options = scalecom::methods::scalecom::Options;

/// Of a rank that names the entries, whose work is the most.
class ScaleCom final : public Statement {
 public:
  explicit ScaleCom(const Options& options) : options_(options) {}

  void step(std::span<Number> gradient, const layout::Layout& bucket, std::int64_t step) override {
    memory_.resize(gradient.size());
    u_.resize(gradient.size());
    for (const layout::Slice& slice : bucket.slices()) {
      const auto values = gradient.subspan(static_cast<std::size_t>(slice.offset),
                                           static_cast<std::size_t>(slice.length));
      if (slice.dense()) {
        mean_of_dense(values);
      } else {
        accumulate(slice, values);
      }
    }
    const std::vector<std::size_t> set = choose(u_, bucket, options_, step);
    for (const layout::Slice& slice : bucket.slices()) {
      if (slice.dense()) continue;
      std::fill_n(gradient.begin() + slice.offset, slice.length, Number(0));
    }
    const Number factor = 1;
    for (const std::size_t i : set) gradient[i] = settle(i) * factor;
  }

 private:
  void accumulate(const layout::Slice& slice, std::span<const Number> gradient) {
    const Number beta = static_cast<float>(options_.beta);
    const Number rest = 1.0F - beta.value();
    const Number decay = static_cast<float>(options_.decay);
    bool finite = true;
    for (std::size_t i = 0; i < gradient.size(); ++i) {
      const std::size_t at = static_cast<std::size_t>(slice.offset) + i;
      memory_[at] = fma(beta, gradient[i], decay * memory_[at]);
      u_[at] = fma(rest, gradient[i], memory_[at]);
      finite = is_finite(u_[at]) && finite;
    }
  }

  /// What is sent of entry `i`.
  Number settle(std::size_t i) {
    const Number sent = rounded(options_.value_type(), u_[i]);
    memory_[i] = fma(-static_cast<float>(options_.beta), sent, memory_[i]);
    return sent;
  }

  Options options_;
  std::vector<Number> memory_;
  std::vector<Number> u_;
};

}  // namespace

std::unique_ptr<Statement> state_scalecom(const core::OptionString& options) {
  Options read;
  read.read(options);
  return std::make_unique<ScaleCom>(read);
}

}  // namespace comparison::operations
