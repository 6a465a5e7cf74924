#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "comparison/operations/counting.h"
#include "scalecom/layout/layout.h"

namespace comparison::operations {

/// A method's own work stated as plainly as it can be, over numbers that count: what a rank does to
/// a gradient besides talking. Tests hold its results to the method's, bit for bit, but for
/// powersgd, whose sums are taken in another order: there they are within 1e-4.
class Statement {
 public:
  virtual ~Statement() = default;

  /// Step `step` of a rank that is alone, past the warm-up: the gradient, which is finite, becomes
  /// what Method::reduce() makes of it.
  virtual void step(std::span<Number> gradient, const scalecom::layout::Layout& layout,
                    std::int64_t step) = 0;
};

/// Of the method that the spec makes; nothing where none is written.
std::unique_ptr<Statement> make_statement(const std::string& spec);

/// Operations an element, counted in the second of two steps on this gradient; nothing where there
/// is no statement of the method.
std::optional<double> count(const std::string& spec,
                            std::span<const scalecom::layout::Tensor> tensors,
                            std::span<const float> gradient);

}  // namespace comparison::operations
