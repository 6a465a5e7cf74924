#include "tests/methods/groups/two_levels.h"

#include <gtest/gtest.h>

#include "scalecom/core/error.h"

namespace scalecom::methods::testing {

layout::Layout grouped_model() {
  return layout::Layout({{"first", 0, 30, 1, {30}},
                         {"conv", 30, 1017, 10, {9, 113}},
                         {"bias", 1047, 7, 1, {7}},
                         {"one", 1054, 1, 1, {1}},
                         {"none", 1055, 0, 1, {0}},
                         {"fc", 1055, 530, 25, {53, 10}}});
}

Gradients group_means(const Gradients& gradients, int members) {
  Gradients means;
  for (std::size_t first = 0; first < gradients.size();
       first += static_cast<std::size_t>(members)) {
    std::vector<float> sum(gradients[first].size(), 0.0F);
    for (std::size_t r = first; r < first + static_cast<std::size_t>(members); ++r) {
      for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += gradients[r][i];
    }
    for (float& value : sum) value /= static_cast<float>(members);
    means.push_back(sum);
  }
  return means;
}

std::map<std::string, std::vector<float>> memories_of(World& world, int first, int members) {
  std::map<std::string, std::map<std::int64_t, std::vector<float>>> parts;
  for (int r = first; r < first + members; ++r) {
    for (const NamedMemory& memory : world.method(r).memories()) {
      const std::size_t bracket = memory.name.find('[');
      const std::int64_t begin =
          bracket == std::string::npos ? 0 : std::stoll(memory.name.substr(bracket + 1));
      parts[memory.name.substr(0, bracket)][begin].assign(memory.values.begin(),
                                                          memory.values.end());
    }
  }
  std::map<std::string, std::vector<float>> whole;
  for (const auto& [name, by_begin] : parts) {
    for (const auto& [begin, values] : by_begin) {
      EXPECT_EQ(static_cast<std::int64_t>(whole[name].size()), begin) << name;
      whole[name].insert(whole[name].end(), values.begin(), values.end());
    }
  }
  return whole;
}

std::string refusal(const std::function<void()>& body) {
  try {
    body();
  } catch (const core::UsageError& error) {
    return error.what();
  }
  return "";
}

}  // namespace scalecom::methods::testing
