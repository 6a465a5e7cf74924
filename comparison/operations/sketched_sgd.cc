#include <array>
#include <map>
#include <string>
#include <vector>

#include "comparison/operations/largest.h"
#include "comparison/operations/methods.h"
#include "scalecom/kernels/sketch.h"
#include "scalecom/methods/sketched_sgd/bucket.h"
#include "scalecom/methods/sketched_sgd/options.h"

namespace comparison::operations {
namespace {

namespace layout = scalecom::layout;
namespace sketch = scalecom::kernels::sketch;
namespace sketched_sgd = scalecom::methods::sketched_sgd;

/// sketch::Walk, counted: a row's hash from one element to the next.
class Walk {
 public:
  explicit Walk(const sketch::Hash& hash) {
    std::array<std::uint32_t, 4> values{};
    hash.walk(0, values);
    for (std::size_t order = 1; order < values.size(); ++order) {
      for (std::size_t i = values.size() - 1; i >= order; --i) {
        values[i] = sketch::add_mod(values[i], sketch::kPrime - values[i - 1]);
      }
    }
    std::copy(values.begin(), values.end(), differences_.begin());
  }

  Bits next() {
    const Bits value = differences_[0];
    for (std::size_t i = 0; i < 3; ++i) {
      const Bits sum = differences_[i] + differences_[i + 1];
      differences_[i] = sum >= Bits(sketch::kPrime) ? sum - Bits(sketch::kPrime) : sum;
    }
    return value;
  }

 private:
  std::array<Bits, 4> differences_;
};

/// The column, by a shift, a product and a shift. What packs it with the sign is no part of the
/// method.
std::uint32_t place_of(Bits hash, std::int64_t columns) {
  done() += 3;
  return sketch::place_of(static_cast<std::uint32_t>(hash.value()),
                          static_cast<std::uint32_t>(columns));
}
/// A look at one bit, and a product.
Number with_sign_of(std::uint32_t place, Number value) {
  done() += 2;
  return sketch::with_sign_of(place, value.value());
}

class SketchedSgd final : public Statement {
 public:
  explicit SketchedSgd(const sketched_sgd::Options& options) : options_(options) {}

  void step(std::span<Number> gradient, const layout::Layout& bucket,
            std::int64_t /*step*/) override {
    const sketched_sgd::Sizes sizes(bucket, options_);
    accumulate(gradient, bucket);
    if (sizes.elements == 0) return;
    const std::vector<Number> estimates = estimate(sizes.sketch, sketched(sizes.sketch));
    std::vector<Candidate> candidates;
    for (std::size_t i = 0; i < estimates.size(); ++i) candidates.push_back({abs(estimates[i]), i});
    keep_largest(candidates, sizes.candidates);
    for (Candidate& one : candidates) {
      static_cast<void>(is_finite(v_[one.at]));
      one.size = abs(v_[one.at]);
    }
    keep_largest(candidates, sizes.kept);
    const Number factor = 1;
    for (const Candidate& one : candidates) {
      gradient[places_[one.at]] = v_[one.at] * factor;
      v_[one.at] = 0;
      u_[one.at] = 0;
    }
  }

 private:
  /// The compressed slices lie one after the other in u and v; what they had in the bucket is 0.
  void accumulate(std::span<Number> gradient, const layout::Layout& bucket) {
    places_.clear();
    for (const layout::Slice& slice : bucket.slices()) {
      const auto begin = static_cast<std::size_t>(slice.offset);
      const auto length = static_cast<std::size_t>(slice.length);
      if (slice.dense()) {
        if (options_.momentum > 0) move_dense(slice.name, gradient.subspan(begin, length));
        mean_of_dense(gradient.subspan(begin, length));
        continue;
      }
      for (std::size_t i = begin; i < begin + length; ++i) places_.push_back(i);
    }
    v_.resize(places_.size());
    u_.resize(places_.size());
    const Number momentum = static_cast<float>(options_.momentum);
    for (std::size_t i = 0; i < places_.size(); ++i) {
      Number fresh = gradient[places_[i]];
      if (options_.momentum > 0) fresh = u_[i] = fresh + momentum * u_[i];
      v_[i] = v_[i] + fresh;
      static_cast<void>(is_finite(v_[i]));
      gradient[places_[i]] = 0;
    }
  }

  void move_dense(const std::string& slice, std::span<Number> gradient) {
    std::vector<Number>& velocity = dense_u_[slice];
    velocity.resize(gradient.size());
    const Number momentum = static_cast<float>(options_.momentum);
    for (std::size_t i = 0; i < gradient.size(); ++i) {
      gradient[i] = velocity[i] = momentum * velocity[i] + gradient[i];
    }
  }

  std::vector<Number> sketched(const sketch::Size& size) const {
    std::vector<Number> table(static_cast<std::size_t>(size.counters()));
    for (std::int64_t row = 0; row < size.rows; ++row) {
      Walk walk(sketch::Hash(size.seed, row));
      Number* const counters = table.data() + row * size.columns;
      for (const Number value : v_) {
        const std::uint32_t place = place_of(walk.next(), size.columns);
        Number& counter = counters[sketch::column_of(place)];
        counter = counter + with_sign_of(place, value);
      }
    }
    for (const Number counter : table) static_cast<void>(is_finite(counter));
    return table;
  }

  std::vector<Number> estimate(const sketch::Size& size, const std::vector<Number>& table) const {
    std::vector<Walk> walks;
    for (std::int64_t row = 0; row < size.rows; ++row) {
      walks.emplace_back(sketch::Hash(size.seed, row));
    }
    std::vector<Number> estimates(v_.size());
    std::vector<Number> votes(walks.size());
    for (Number& value : estimates) {
      for (std::size_t row = 0; row < walks.size(); ++row) {
        const std::uint32_t place = place_of(walks[row].next(), size.columns);
        const std::size_t first = row * static_cast<std::size_t>(size.columns);
        votes[row] = with_sign_of(place, table[first + sketch::column_of(place)]);
      }
      value = median(votes);
    }
    return estimates;
  }

  /// By insertion.
  static Number median(std::vector<Number>& values) {
    for (std::size_t i = 1; i < values.size(); ++i) {
      for (std::size_t at = i; at > 0 && values[at - 1] > values[at]; --at) {
        std::swap(values[at - 1], values[at]);
      }
    }
    const std::size_t middle = values.size() / 2;
    if (values.size() % 2 != 0) return values[middle];
    return Number(0.5F) * values[middle - 1] + Number(0.5F) * values[middle];
  }

  sketched_sgd::Options options_;
  std::vector<std::size_t> places_;
  std::vector<Number> u_;
  std::vector<Number> v_;
  std::map<std::string, std::vector<Number>> dense_u_;  // by slice
};

}  // namespace

std::unique_ptr<Statement> state_sketched_sgd(const scalecom::core::OptionString& options) {
  sketched_sgd::Options read;
  read.read(options);
  return std::make_unique<SketchedSgd>(read);
}

}  // namespace comparison::operations
