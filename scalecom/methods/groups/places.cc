#include "scalecom/methods/groups/places.h"

#include <unistd.h>

#include <array>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <string>

#include "scalecom/comm/together.h"
#include "scalecom/core/error.h"
#include "scalecom/core/hash.h"
#include "scalecom/core/text.h"

namespace scalecom::methods::groups {
namespace {

// What tells this host from others. SCALECOM_NODE names it where the host's own name does not, as
// in containers that all have the same.
std::string host_name() {
  if (const char* const node = std::getenv("SCALECOM_NODE")) return node;
  std::array<char, 256> name{};
  if (gethostname(name.data(), name.size() - 1) != 0) return "localhost";
  return name.data();
}

}  // namespace

Places by_number(int world, int size) {
  if (world % size != 0) {
    throw core::UsageError(
        core::concat("[groups] ", world, " ranks do not divide into groups of ", size));
  }
  Places places{{}, {}, world / size, size};
  for (int rank = 0; rank < world; ++rank) {
    places.group.push_back(rank / size);
    places.member.push_back(rank % size);
  }
  return places;
}

Places by_host(comm::Communicator& communicator) {
  const std::vector<std::uint64_t> hosts = comm::gather(communicator, core::hash(host_name()));
  Places places;
  std::map<std::uint64_t, int> numbers;
  std::vector<int> sizes;
  for (const std::uint64_t host : hosts) {
    const auto [found, is_new] = numbers.emplace(host, static_cast<int>(sizes.size()));
    if (is_new) sizes.push_back(0);
    places.group.push_back(found->second);
    places.member.push_back(sizes[static_cast<std::size_t>(found->second)]++);
  }
  places.groups = static_cast<int>(sizes.size());
  places.members = sizes.front();
  for (const int size : sizes) {
    if (size == places.members) continue;
    std::vector<std::string> texts;
    for (const int one : sizes) texts.push_back(std::to_string(one));
    throw core::UsageError(core::concat(
        "[groups] groups=node needs the same number of ranks on every host; there are ",
        core::join(texts), "; groups=N makes groups of N ranks in a row"));
  }
  return places;
}

}  // namespace scalecom::methods::groups
