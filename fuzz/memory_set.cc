#include "scalecom/state/memory_set.h"

#include <algorithm>
#include <string>
#include <vector>

#include "fuzz/input.h"
#include "fuzz/limits.h"
#include "scalecom/core/error.h"

namespace {

namespace state = scalecom::state;
using fuzz::Input;

constexpr std::int64_t kMostElements = 12;  // of a tensor, or of a part

// A whole tensor or a part of one, whose key may say other elements than it has.
std::string name_of(Input& input) {
  std::string tensor(1, static_cast<char>(input.number('a', 'c')));
  if (input.number(0, 3) == 0) return tensor;
  const std::int64_t first = input.number(0, 2 * kMostElements);
  const std::int64_t end = first + input.number(0, kMostElements);
  std::string key = tensor + "[" + std::to_string(first) + ":" + std::to_string(end) + "]";
  return input.number(0, 7) == 0 ? key + "[0:" + std::to_string(end) + "]" : key;
}

std::vector<state::RankMemories::Named> tensors_of(Input& input, std::span<const float> values) {
  std::vector<state::RankMemories::Named> named;
  for (std::int64_t left = input.number(0, 4); left > 0; --left) {
    std::string name = name_of(input);
    const auto count = static_cast<std::size_t>(input.number(0, kMostElements));
    const bool twice = std::any_of(named.begin(), named.end(),
                                   [&](const auto& other) { return other.name == name; });
    if (!twice) named.push_back({std::move(name), values.first(count)});
  }
  return named;
}

// One tensor as a group writes it: joined wherever the rest is not refused.
std::vector<state::RankMemories::Named> shared_of(int member, int members,
                                                  std::span<const float> values) {
  const std::int64_t count = kMostElements / members;
  const std::string first = std::to_string(member * count);
  const std::string end = std::to_string((member + 1) * count);
  return {{"d[" + first + ":" + end + "]", values.first(static_cast<std::size_t>(count))}};
}

void write_set(Input& input, int world) {
  const std::vector<float> values(kMostElements, 1.0F);
  const auto learners = static_cast<int>(input.number(1, world));
  for (int rank = 0; rank < world; ++rank) {
    state::RankMemories memories{"m", input.number(0, 15) == 0 ? 1 : 0, {}, ""};
    memories.learner = {rank % learners, learners};
    if (input.number(0, 15) == 0) memories.learner->number = static_cast<int>(input.number(0, 4));
    memories.named = tensors_of(input, values);
    const std::vector<state::RankMemories::Named> shared =
        shared_of(rank / learners, std::max(1, world / learners), values);
    memories.named.insert(memories.named.end(), shared.begin(), shared.end());
    state::write_file(fuzz::folder(), rank, world, memories);
  }
}

// The tensors that a learner gets, with their sizes. All that was written are ones.
std::vector<std::string> load(int number, int learners) {
  std::vector<std::string> found;
  for (const auto& [name, data] : state::load(fuzz::folder(), number, learners).memories) {
    found.push_back(name + " " + std::to_string(data.size()));
    fuzz::require(std::all_of(data.begin(), data.end(), [](float x) { return x == 1.0F; }),
                  "every element comes from some file");
  }
  return found;
}

}  // namespace

/// Two or three files, each sound by itself, as headers that pass their checksum, whose ranks may
/// share memories; loaded into one, two and three learners.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  Input input(data, size);
  const auto world = static_cast<int>(input.number(2, 3));
  std::filesystem::remove_all(fuzz::folder());
  write_set(input, world);
  const fuzz::Limits limits(std::size_t{1} << 18);
  try {
    fuzz::require(state::describe(fuzz::folder()).world == world, "the set is the one written");
    const std::vector<std::string> tensors = load(0, 1);
    fuzz::require(load(1, 2) == tensors && load(1, 3) == tensors,
                  "every learner gets the same tensors");
  } catch (const scalecom::core::UsageError&) {
  }
  return 0;
}
