#pragma once

#include <algorithm>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "scalecom/layout/rates.h"
#include "scalecom/methods/method.h"
#include "tests/methods/ranks.h"

/// Layouts of tensors that have shapes, for methods that look at them.
namespace scalecom::methods::testing {

/// A convolution, vectors, a matrix and a tensor of one element.
inline std::vector<layout::Tensor> small_model() {
  return {
      {"conv", {16, 8, 3, 3}}, {"bias", {16}}, {"fc", {40, 61}}, {"one", {1, 1}}, {"out", {7, 40}}};
}

inline layout::Layout layout_for(const std::string& spec,
                                 const std::vector<layout::Tensor>& model) {
  return layout::make_layout(model, make(spec)->rate_policy());
}

/// Copies by name, of one rank.
inline std::map<std::string, std::vector<float>> copies_of(Method& method) {
  std::map<std::string, std::vector<float>> all;
  for (const NamedMemory& memory : method.memories()) {
    all[memory.name] = {memory.values.begin(), memory.values.end()};
  }
  return all;
}

inline Memories to_memories(const std::map<std::string, std::vector<float>>& copies) {
  Memories memories;
  for (const auto& [name, values] : copies) {
    core::AlignedArray<float> array(static_cast<std::int64_t>(values.size()));
    std::copy(values.begin(), values.end(), array.begin());
    memories.emplace(name, std::move(array));
  }
  return memories;
}

}  // namespace scalecom::methods::testing
