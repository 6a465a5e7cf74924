#include "tests/state/saved_arrays.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <random>

#include "scalecom/core/error.h"
#include "tests/state/temporary_folder.h"

namespace scalecom::state {

void save_arrays(const std::filesystem::path& folder, int rank, int world, const Arrays& arrays,
                 std::int64_t step, const std::string& method, const std::string& tag,
                 std::int64_t number) {
  RankMemories memories{method, step, {}, tag};
  memories.number = number;
  for (const auto& [name, data] : arrays) memories.named.push_back({name, data});
  save(folder, rank, world, memories);
}

Arrays random_arrays(int seed) {
  std::mt19937 random(static_cast<unsigned>(seed));
  std::normal_distribution<float> normal;
  Arrays arrays{{"large", std::vector<float>(100000)},
                {"layer.größe\n", std::vector<float>(100)},
                {"one", std::vector<float>(1)},
                {"none", {}}};
  for (auto& [name, data] : arrays) {
    for (float& x : data) x = normal(random) * std::exp(5 * normal(random));
  }
  return arrays;
}

std::vector<Arrays> save_world(const std::filesystem::path& folder, int world, std::int64_t step,
                               std::int64_t number) {
  std::vector<Arrays> all;
  for (int rank = 0; rank < world; ++rank) {
    all.push_back(random_arrays(100 * world + rank));
    save_arrays(folder, rank, world, all.back(), step, kMethod, "", number);
  }
  return all;
}

void save_numbered(const std::filesystem::path& folder, int rank, int world, std::int64_t step,
                   std::int64_t number) {
  save_arrays(folder, rank, world, {{"w", {1, 2}}}, step, kMethod, "", number);
}

void expect_same_bits(const Loaded& loaded, const Arrays& arrays) {
  ASSERT_EQ(loaded.memories.size(), arrays.size());
  for (const auto& [name, data] : arrays) {
    const auto& read = loaded.memories.at(name);
    ASSERT_EQ(read.size(), static_cast<std::int64_t>(data.size()));
    EXPECT_TRUE(std::equal(data.begin(), data.end(), read.begin(), [](float a, float b) {
      return std::bit_cast<std::uint32_t>(a) == std::bit_cast<std::uint32_t>(b);
    })) << name;
  }
}

std::string load_refusal(const std::filesystem::path& folder, int rank, int world) {
  return refusal<core::UsageError>([&] { load(folder, rank, world); });
}

}  // namespace scalecom::state
