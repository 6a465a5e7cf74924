#include <algorithm>
#include <bit>
#include <vector>

#include "comparison/operations/largest.h"
#include "comparison/operations/methods.h"
#include "scalecom/kernels/largest.h"
#include "scalecom/methods/dgc/options.h"
#include "scalecom/methods/dgc/threshold.h"
#include "scalecom/methods/sparse/shape.h"

namespace comparison::operations {
namespace {

namespace dgc = scalecom::methods::dgc;
using scalecom::methods::sparse::Shape;

/// A tensor's memory as the search for its threshold sees it, counted.
class CountedNumbers final : public dgc::Numbers {
 public:
  explicit CountedNumbers(std::span<const Number> numbers) : numbers_(numbers) {}

  std::int64_t length() const override { return static_cast<std::int64_t>(numbers_.size()); }

  std::int32_t key_reached(std::int64_t first, std::int64_t stride, std::int64_t keep) override {
    std::vector<Candidate> sample;
    for (auto i = static_cast<std::size_t>(first); i < numbers_.size();
         i += static_cast<std::size_t>(stride)) {
      sample.push_back({abs(numbers_[i]), i});
    }
    operations::keep_largest(sample, keep);
    // A quickselect leaves the least of those that it keeps as the last.
    return scalecom::kernels::magnitude_key(sample.back().size.value());
  }

  std::vector<std::uint32_t> positions_from(std::int32_t least) override {
    const Number threshold = std::bit_cast<float>(least);
    std::vector<std::uint32_t> found;
    for (std::size_t i = 0; i < numbers_.size(); ++i) {
      if (abs(numbers_[i]) >= threshold) found.push_back(static_cast<std::uint32_t>(i));
    }
    return found;
  }

  std::vector<std::uint32_t> keep_largest(const std::vector<std::uint32_t>& candidates,
                                          std::int64_t keep) override {
    std::vector<Candidate> among;
    for (const std::uint32_t at : candidates) among.push_back({abs(numbers_[at]), at});
    operations::keep_largest(among, keep);
    std::vector<std::uint32_t> kept;
    for (const Candidate& one : among) kept.push_back(static_cast<std::uint32_t>(one.at));
    std::sort(kept.begin(), kept.end());
    return kept;
  }

 private:
  std::span<const Number> numbers_;
};

class Dgc final : public Statement {
 public:
  explicit Dgc(const dgc::Options& options) : options_(options) {}

  void step(std::span<Number> gradient, const scalecom::layout::Layout& bucket,
            std::int64_t step) override {
    memory_.resize(gradient.size());
    velocity_.resize(gradient.size());
    if (options_.clip > 0) clip(gradient);
    for (std::size_t i = 0; i < gradient.size(); ++i) gradient[i] = moved(i, gradient[i]);
    const Shape shape(bucket);
    for (const Shape::DensePart& part : shape.dense_parts) {
      mean_of_dense(gradient.subspan(static_cast<std::size_t>(part.offset),
                                     static_cast<std::size_t>(part.length)));
    }
    for (const Shape::Part& part : shape.parts) {
      reduce(gradient.subspan(static_cast<std::size_t>(part.offset),
                              static_cast<std::size_t>(part.length)),
             part, step);
    }
  }

 private:
  void clip(std::span<Number> gradient) const {
    Counting<double> squares = 0;
    for (const Number value : gradient) {
      const Counting<double> wide = value.value();
      squares = squares + wide * wide;
    }
    const Number scale = options_.clipping(squares.value(), 1);
    for (Number& value : gradient) value = value * scale;
  }

  /// What entry `i` moves by, after its velocity.
  Number moved(std::size_t i, Number gradient) {
    const Number momentum = static_cast<float>(options_.momentum);
    Number& velocity = velocity_[i];
    velocity =
        options_.nesterov != 0 ? momentum * (velocity + gradient) : momentum * velocity + gradient;
    static_cast<void>(is_finite(velocity));
    return options_.nesterov != 0 ? velocity + gradient : velocity;
  }

  /// What `values` move by becomes what is sent of it.
  void reduce(std::span<Number> values, const Shape::Part& part, std::int64_t step) {
    Number* const memory = memory_.data() + part.offset;
    Number* const velocity = velocity_.data() + part.offset;
    for (std::size_t i = 0; i < values.size(); ++i) {
      memory[i] = memory[i] + values[i];
      static_cast<void>(is_finite(memory[i]));
      values[i] = 0;
    }
    CountedNumbers numbers({memory, values.size()});
    for (const std::uint32_t at : dgc::select_by_sample(numbers, part.rate, part.keep(),
                                                        dgc::sample_draw(part.name, step))) {
      add_to_mean(values[at], memory[at]);
      velocity[at] = 0;
    }
  }

  dgc::Options options_;
  std::vector<Number> memory_;
  std::vector<Number> velocity_;
};

}  // namespace

std::unique_ptr<Statement> state_dgc(const scalecom::core::OptionString& options) {
  dgc::Options read;
  read.table().read(options.settings);
  return std::make_unique<Dgc>(read);
}

}  // namespace comparison::operations
