#include "scalecom/state/method_state.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <exception>
#include <functional>
#include <string>
#include <vector>

#include "scalecom/core/error.h"
#include "scalecom/core/text.h"
#include "scalecom/state/memory_file.h"

namespace scalecom::state {
namespace {

// Runs `part` on every rank; returns normally everywhere or throws everywhere.
void together(comm::Communicator& communicator, const std::function<void()>& part) {
  std::array<char, 512> mine{};
  std::exception_ptr failure;
  try {
    part();
  } catch (const std::exception& error) {
    failure = std::current_exception();
    const std::string text = error.what();
    std::memcpy(mine.data(), text.data(), std::min(text.size(), mine.size() - 1));
  }
  std::vector<std::array<char, 512>> all(static_cast<std::size_t>(communicator.size()));
  communicator.all_gather(std::as_bytes(std::span(mine)), std::as_writable_bytes(std::span(all)));
  if (failure) std::rethrow_exception(failure);
  for (std::size_t rank = 0; rank < all.size(); ++rank) {
    if (all[rank][0] == '\0') continue;
    throw core::UsageError(core::concat("[state] rank ", rank, ": ", all[rank].data()));
  }
}

}  // namespace

void save_method(const std::filesystem::path& folder, const methods::Method& method,
                 comm::Communicator& communicator) {
  Memories memories{method.spec(), method.steps(), {}, {}};
  for (const methods::NamedMemory& memory : method.memories()) {
    memories.named.push_back({memory.name, memory.values});
  }
  together(communicator, [&] { save(folder, communicator.rank(), communicator.size(), memories); });
}

void load_method(const std::filesystem::path& folder, methods::Method& method,
                 comm::Communicator& communicator) {
  Loaded loaded;
  together(communicator, [&] {
    loaded = load(folder, communicator.rank(), communicator.size());
    if (loaded.method == method.spec()) return;
    throw core::UsageError(core::concat("[state] ", folder.string(), " was saved by '",
                                        loaded.method, "', and this is '", method.spec(),
                                        "'; load it into the former, then configure() it"));
  });
  method.restore(loaded.step, std::move(loaded.memories));
}

}  // namespace scalecom::state
