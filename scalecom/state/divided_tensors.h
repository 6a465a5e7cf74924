#pragma once

#include <compare>
#include <cstdint>
#include <filesystem>
#include <map>
#include <set>
#include <span>
#include <string>

#include "scalecom/core/aligned_array.h"

namespace scalecom::state {

/// A part of a tensor that is divided among the members of a group, by its place.
struct TensorPart {
  std::int64_t first = 0;
  std::int64_t count = 0;
  std::string key;  ///< "fc[200:400]"

  auto operator<=>(const TensorPart&) const = default;
};

/// By tensor, the parts that follow one another from its first element to its last.
using DividedTensors = std::map<std::string, std::set<TensorPart>>;

/// Of the elements by name that each member has. core::UsageError, naming the folder, where the
/// parts of a tensor leave out some of its elements or have them twice, or where one has not the
/// elements that its key says.
DividedTensors divided_tensors(const std::filesystem::path& folder,
                               std::span<const std::map<std::string, std::int64_t>> members);

/// Puts the tensors in the place of their parts, all of which have to be there.
void join(const DividedTensors& divided,
          std::map<std::string, core::AlignedArray<float>>& memories);

}  // namespace scalecom::state
