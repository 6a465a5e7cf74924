#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "comparison/operations/counting.h"
#include "scalecom/layout/layout.h"
#include "scalecom/methods/scalecom/options.h"

namespace comparison::operations {

/// The entries of a bucket that a rank of ScaleCom names in a step, as `select` says, by their
/// sizes in `u`; none of a dense slice.
std::vector<std::size_t> choose(std::span<const Number> u, const scalecom::layout::Layout& bucket,
                                const scalecom::methods::scalecom::Options& options,
                                std::int64_t step);

}  // namespace comparison::operations
