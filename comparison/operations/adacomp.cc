#include <map>
#include <vector>

#include "comparison/operations/methods.h"

namespace comparison::operations {
namespace {

namespace layout = scalecom::layout;

class AdaComp final : public Statement {
 public:
  AdaComp(std::int64_t bin, std::int64_t convolution_bin)
      : bin_(bin), convolution_bin_(convolution_bin) {}

  void step(std::span<Number> gradient, const layout::Layout& bucket,
            std::int64_t /*step*/) override {
    memory_.resize(gradient.size());
    for (const layout::Slice& slice : bucket.slices()) {
      const auto values = gradient.subspan(static_cast<std::size_t>(slice.offset),
                                           static_cast<std::size_t>(slice.length));
      if (slice.shape.size() < 2) {
        mean_of_dense(values);
      } else {
        reduce(values, memory_.data() + slice.offset,
               slice.shape.size() > 2 ? convolution_bin_ : bin_);
        mean_of_dense(values);
      }
    }
  }

 private:
  /// `values` become what is sent of them.
  static void reduce(std::span<Number> values, Number* memory, std::int64_t bin) {
    std::vector<bool> chosen(values.size());
    Counting<double> largest_sum = 0;
    double bins = 0;
    for (std::size_t begin = 0; begin < values.size(); begin += static_cast<std::size_t>(bin)) {
      const std::size_t end = std::min(values.size(), begin + static_cast<std::size_t>(bin));
      Number largest = 0;
      for (std::size_t i = begin; i < end; ++i) {
        memory[i] = memory[i] + values[i];
        const Number size = abs(memory[i]);
        if (size > largest) largest = size;
      }
      for (std::size_t i = begin; i < end; ++i) {
        const Number next = memory[i] + values[i];
        static_cast<void>(is_finite(next));
        chosen[i] = abs(next) >= largest && !(abs(memory[i]) < smallest());
      }
      largest_sum = largest_sum + static_cast<double>(largest.value());
      bins += 1;
    }
    const auto scale = static_cast<float>((largest_sum / bins).value());
    for (std::size_t i = 0; i < values.size(); ++i) {
      values[i] = 0;
      if (!chosen[i]) continue;
      values[i] = memory[i] < Number(0) ? -scale : scale;
      memory[i] = memory[i] - values[i];
    }
  }

  /// Nothing but 0 is smaller: an entry without a sign.
  static Number smallest() { return std::numeric_limits<float>::denorm_min(); }

  std::int64_t bin_;
  std::int64_t convolution_bin_;
  std::vector<Number> memory_;
};

}  // namespace

std::unique_ptr<Statement> state_adacomp(const scalecom::core::OptionString& options) {
  std::map<std::string, std::string> settings(options.settings.begin(), options.settings.end());
  return std::make_unique<AdaComp>(std::stoll(settings.at("bin")),
                                   std::stoll(settings.at("conv_bin")));
}

}  // namespace comparison::operations
