#include "scalecom/state/method_state.h"

#include <algorithm>
#include <utility>

#include "scalecom/comm/together.h"
#include "scalecom/core/error.h"
#include "scalecom/core/text.h"
#include "scalecom/state/memory_set.h"

namespace scalecom::state {
namespace {

RankMemories memories_of(const methods::Method& method, const methods::Learner& learner,
                         std::int64_t number) {
  RankMemories memories{method.spec(), method.steps(), {}, {}, learner, number};
  for (const methods::NamedMemory& memory : method.memories()) {
    memories.named.push_back({memory.name, memory.values});
  }
  return memories;
}

// A spec that was saved, without its groups: options that are younger than the save have their
// defaults.
std::string full_spec(const std::string& saved) {
  std::string spec = methods::without_groups(saved);
  try {
    return methods::make(spec)->spec();
  } catch (const core::UsageError&) {
    return spec;
  }
}

// The ranks may see different folders, and some may have written to theirs before they were cut
// short.
std::int64_t agreed_number(const std::filesystem::path& folder, comm::Communicator& communicator) {
  std::int64_t number = 0;
  comm::together(communicator, [&] { number = next_number(folder); });
  for (const std::int64_t one : comm::gather(communicator, number)) {
    number = std::max(number, one);
  }
  return number;
}

}  // namespace

Loaded load_for(const methods::Method& method, const std::filesystem::path& folder,
                const methods::Learner& learner) {
  Loaded loaded = load(folder, learner.number, learner.learners);
  if (full_spec(loaded.method) != methods::without_groups(method.spec())) {
    throw core::UsageError(core::concat("[state] ", folder.string(), " was saved by '",
                                        loaded.method, "', and this is '", method.spec(),
                                        "'; load it into the former, then configure() it"));
  }
  return loaded;
}

void save_method(const std::filesystem::path& folder, const methods::Method& method, int rank,
                 int world, const methods::Learner& learner, std::int64_t number) {
  save(folder, rank, world, memories_of(method, learner, number));
}

void load_method(const std::filesystem::path& folder, methods::Method& method,
                 const methods::Learner& learner) {
  Loaded loaded = load_for(method, folder, learner);
  method.restore(loaded.step, std::move(loaded.memories));
}

void save_method(const std::filesystem::path& folder, const methods::Method& method,
                 comm::Communicator& communicator) {
  const methods::Learner learner = method.learner(communicator);
  const int rank = communicator.rank();
  const int world = communicator.size();
  const std::int64_t number = agreed_number(folder, communicator);
  comm::together(communicator,
                 [&] { write_file(folder, rank, world, memories_of(method, learner, number)); });
  remove_replaced(folder, {number, world}, rank);
}

void load_method(const std::filesystem::path& folder, methods::Method& method,
                 comm::Communicator& communicator) {
  const methods::Learner learner = method.learner(communicator);
  Loaded loaded;
  comm::together(communicator, [&] { loaded = load_for(method, folder, learner); });
  method.restore(loaded.step, std::move(loaded.memories));
}

}  // namespace scalecom::state
