#include "bench/scripted_peers.h"

#include <algorithm>
#include <cstring>

#include "scalecom/core/error.h"

namespace bench {
namespace {

[[noreturn]] void not_in_the_script(const char* call) {
  throw scalecom::core::UsageError(std::string("[bench] the script has no ") + call);
}

}  // namespace

void ScriptedPeers::place_on(const scalecom::core::Stream& stream) {
  const auto bytes = static_cast<std::int64_t>(broadcast_.size());
  placed_ = scalecom::core::Array<std::byte>(stream.device(), bytes);
  scalecom::core::cuda::copy(placed_.data(), broadcast_.data(), bytes, stream);
}

void ScriptedPeers::broadcast(std::span<std::byte> data, int root,
                              const scalecom::core::Stream& stream) {
  if (root == rank()) return;
  if (data.size() != broadcast_.size()) not_in_the_script("broadcast of this size");
  if (stream.device().is_cuda()) {
    scalecom::core::cuda::copy(data.data(), placed_.data(), placed_.size(), stream);
  } else {
    std::memcpy(data.data(), broadcast_.data(), data.size());
  }
}

// Everybody says what this rank says.
void ScriptedPeers::all_gather(std::span<const std::byte> mine, std::span<std::byte> all,
                               std::span<const std::int64_t> /*sizes*/,
                               const scalecom::core::Stream& /*stream*/) {
  for (std::size_t at = 0; at + mine.size() <= all.size() && !mine.empty(); at += mine.size()) {
    std::memmove(all.data() + at, mine.data(), mine.size());
  }
}

void ScriptedPeers::all_to_all(std::span<const std::byte> /*out*/,
                               std::span<const std::int64_t> /*out_sizes*/,
                               std::span<std::byte> /*in*/,
                               std::span<const std::int64_t> /*in_sizes*/,
                               const scalecom::core::Stream& /*stream*/) {
  not_in_the_script("all_to_all");
}

void ScriptedPeers::send(std::span<const std::byte> /*data*/, int /*to*/,
                         const scalecom::core::Stream& /*stream*/) {
  not_in_the_script("send");
}

void ScriptedPeers::receive(std::span<std::byte> /*data*/, int /*from*/,
                            const scalecom::core::Stream& /*stream*/) {
  not_in_the_script("receive");
}

std::unique_ptr<scalecom::comm::Communicator> ScriptedPeers::split(int /*color*/, int /*key*/) {
  not_in_the_script("split");
}

}  // namespace bench
