#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "scalecom/layout/layout.h"

namespace scalecom::layout {

/// How tensors get their rates. One-dimensional tensors (and scalars) are always dense, and so is
/// every tensor shorter than its rate.
struct RatePolicy {
  enum class Kind : std::uint8_t {
    kUniform,  ///< `rate` for all
    kFlops,    ///< values sent in proportion to a layer's FLOPs, rates within [1, 1000], the
               ///< compressed tensors together at `rate`
    kPaper,    ///< 25, 50 or 400 by FLOPs per gradient: from 196 on, from 128 on, under 128
    kPattern,  ///< the first pattern that matches a name; `rate` where none does
  };

  Kind kind = Kind::kUniform;
  double rate = 1;
  /// Name patterns (* any text, ? any character) and their rates; kDense for dense. A pattern also
  /// overrules first_layer_dense, never the rule on one-dimensional tensors.
  std::vector<std::pair<std::string, double>> patterns;
  /// The first tensor of two or more dimensions travels dense.
  bool first_layer_dense = true;

  /// "uniform", "flops", "paper", or patterns as "fc*:400;conv?.weight:25;embed*:dense". Sets kind
  /// and patterns; UsageError for anything else.
  void parse_rates(const std::string& text);
  std::string rates_text() const;
  /// UsageError for a rate that is not allowed: what can be said before a model is known.
  void check() const;
};

/// The rates of a whole model, from which the layouts of its buckets follow.
class RatePlan {
 public:
  /// UsageError for a name that stands twice, a negative size, a rate that is not allowed, a
  /// pattern that no name is of, or FLOPs that are needed and unknown.
  RatePlan(std::span<const Tensor> model, const RatePolicy& policy);

  /// The rate of a tensor of the model; UsageError for another name.
  double rate_of(const std::string& name) const;
  /// The layout of a bucket that holds these tensors of the model, in this order; UsageError for
  /// another name or another number of elements.
  Layout bucket(std::span<const Tensor> tensors) const;

 private:
  struct Entry {
    double rate;
    std::int64_t elements;
  };
  const Entry& entry_of(const std::string& name) const;

  std::map<std::string, Entry> entries_;
};

/// The layout of a model whose gradient is one bucket.
Layout make_layout(std::span<const Tensor> model, const RatePolicy& policy);

}  // namespace scalecom::layout
