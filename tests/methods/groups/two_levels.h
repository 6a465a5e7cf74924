#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "scalecom/layout/layout.h"
#include "tests/methods/ranks.h"

/// What tests of groups share: groups of ranks, seen as learners.
namespace scalecom::methods::testing {

/// Tensors with tails, one shorter than the group is large, an empty one and dense ones.
layout::Layout grouped_model();

/// The mean gradient of each group of `members` ranks. Of whole numbers, whose sums are exact.
Gradients group_means(const Gradients& gradients, int members);

/// The tensors' memories, each from the parts that `members` ranks from `first` on hold.
std::map<std::string, std::vector<float>> memories_of(World& world, int first, int members);

/// What a UsageError of `body` says; nothing where there is none.
std::string refusal(const std::function<void()>& body);

}  // namespace scalecom::methods::testing
