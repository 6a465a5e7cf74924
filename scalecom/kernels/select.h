#pragma once

#include <cstdint>
#include <span>

#include "scalecom/kernels/kernels.h"
#include "scalecom/layout/selection.h"

/// The selections that look at more than one pass can hold: after `accumulate`, over tensors whose
/// memory is m'. Positions ascend; among equal |u| the lowest positions are kept.
namespace scalecom::kernels {

/// The largest |u| of each chunk in [first, last) of a tensor, as many as its cut keeps. The items
/// of chunk c begin at cut.kept_before(c) in `positions`.
void select_top(const Tensor& tensor, Filter filter, const layout::Cut& cut, std::int64_t first,
                std::int64_t last, std::uint32_t* positions);

/// The largest `keep` |u| over all of `tensors` (ties: the earlier tensor, then the lower
/// position). `positions` has room for `keep`; tensor i's come after those of the tensors before
/// it, counts[i] of them. Divides its own work among the pool's threads.
void select_exact(std::span<const Tensor> tensors, Filter filter, std::int64_t keep,
                  std::uint32_t* positions, std::int64_t* counts);

/// One position of each chunk in [first, last), drawn from `seed` and the chunk's number in its
/// tensor, of which chunks_before come before this cut: the same on every rank.
void select_random(std::uint64_t seed, std::int64_t chunks_before, const layout::Cut& cut,
                   std::int64_t first, std::int64_t last, std::uint32_t* positions);

}  // namespace scalecom::kernels
