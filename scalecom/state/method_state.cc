#include "scalecom/state/method_state.h"

#include <utility>

#include "scalecom/comm/together.h"
#include "scalecom/core/error.h"
#include "scalecom/core/text.h"
#include "scalecom/state/memory_file.h"

namespace scalecom::state {
namespace {

Loaded load_for(const methods::Method& method, const std::filesystem::path& folder,
                const methods::Replica& replica) {
  Loaded loaded = load(folder, replica.number, replica.replicas);
  if (methods::without_groups(loaded.method) != methods::without_groups(method.spec())) {
    throw core::UsageError(core::concat("[state] ", folder.string(), " was saved by '",
                                        loaded.method, "', and this is '", method.spec(),
                                        "'; load it into the former, then configure() it"));
  }
  return loaded;
}

}  // namespace

void save_method(const std::filesystem::path& folder, const methods::Method& method, int rank,
                 int world, const methods::Replica& replica) {
  Memories memories{method.spec(), method.steps(), {}, {}, {replica.number, replica.replicas}};
  for (const methods::NamedMemory& memory : method.memories()) {
    memories.named.push_back({memory.name, memory.values});
  }
  save(folder, rank, world, memories);
}

void load_method(const std::filesystem::path& folder, methods::Method& method,
                 const methods::Replica& replica) {
  Loaded loaded = load_for(method, folder, replica);
  method.restore(loaded.step, std::move(loaded.memories));
}

void save_method(const std::filesystem::path& folder, const methods::Method& method,
                 comm::Communicator& communicator) {
  const methods::Replica replica = method.replica(communicator);
  comm::together(communicator, [&] {
    save_method(folder, method, communicator.rank(), communicator.size(), replica);
  });
}

void load_method(const std::filesystem::path& folder, methods::Method& method,
                 comm::Communicator& communicator) {
  const methods::Replica replica = method.replica(communicator);
  Loaded loaded;
  comm::together(communicator, [&] { loaded = load_for(method, folder, replica); });
  method.restore(loaded.step, std::move(loaded.memories));
}

}  // namespace scalecom::state
