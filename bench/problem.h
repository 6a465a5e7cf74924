#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "bench/step.h"
#include "scalecom/core/aligned_array.h"
#include "scalecom/kernels/kernels.h"
#include "scalecom/layout/layout.h"
#include "scalecom/layout/selection.h"

namespace bench {

/// What a step is measured on: one tensor, its gradient, and the entries that a leader elsewhere
/// names.
class Problem {
 public:
  explicit Problem(const StepPlan& plan);

  const StepPlan& plan() const { return plan_; }
  std::string method() const;
  const scalecom::layout::Layout& layout() const { return layout_; }
  /// A gradient like any other: no zeros, no order, both signs.
  std::span<const std::byte> source() const;
  /// Those of the leader elsewhere, packed as they cross the network.
  const std::vector<std::byte>& offsets() const { return offsets_; }

  /// Bytes of the gradient.
  std::int64_t bytes() const;

 private:
  friend class Expected;

  bool exact() const { return selection_.kind == scalecom::layout::Selection::Kind::kExact; }
  void name_positions();

  StepPlan plan_;
  scalecom::layout::Layout layout_;
  scalecom::layout::Selection selection_;
  scalecom::layout::Cut cut_;  ///< of an exact selection: all as one chunk
  std::vector<std::uint32_t> positions_;
  std::vector<std::byte> offsets_;
  scalecom::core::AlignedArray<std::byte> source_;
};

/// The same step by the scalar reference, in host memory.
class Expected {
 public:
  explicit Expected(const Problem& problem);

  /// Of rank `rank` of `size`, the others adding nothing to the sum.
  void step(bool leads, int size, std::int64_t number);

  std::span<const std::byte> gradient() const;
  std::span<const float> memory() const;

 private:
  scalecom::kernels::Tensor tensor();
  void select(std::int64_t number);

  const Problem& problem_;
  scalecom::core::AlignedArray<std::byte> gradient_;
  scalecom::core::AlignedArray<float> memory_;
  std::vector<std::uint32_t> positions_;
  std::vector<float> values_;
  std::vector<float> before_;
};

bool same_bytes(std::span<const std::byte> a, std::span<const std::byte> b);

}  // namespace bench
