#include "scalecom/comm/arguments.h"

#include <algorithm>
#include <functional>
#include <string>

#include "scalecom/core/cuda/runtime.h"
#include "scalecom/core/error.h"
#include "scalecom/core/text.h"

namespace scalecom::comm {
namespace {

/// Longer deadlines are as good as this one.
constexpr std::chrono::milliseconds kLongestDeadline = std::chrono::hours(24 * 365);

bool overlap(std::span<const std::byte> a, std::span<const std::byte> b) {
  const std::less<const std::byte*> before;
  return !a.empty() && !b.empty() && before(a.data(), b.data() + b.size()) &&
         before(b.data(), a.data() + a.size());
}

}  // namespace

std::chrono::milliseconds checked_deadline(std::chrono::milliseconds deadline) {
  if (deadline.count() < 1) {
    throw core::UsageError(
        core::concat("[set_deadline] a deadline of ", deadline.count(), " ms; it is 1 ms or more"));
  }
  return std::min(deadline, kLongestDeadline);
}

void Arguments::check_rank(Fabric::Call call, int peer) const {
  if (peer < 0 || peer >= size_) {
    throw core::UsageError(core::concat("[", to_string(call), "] there is no rank ", peer,
                                        "; ranks are 0 to ", size_ - 1));
  }
}

void Arguments::check_peer(Fabric::Call call, int peer) const {
  check_rank(call, peer);
  if (peer == rank_) {
    throw core::UsageError(core::concat("[", to_string(call), "] rank ", peer,
                                        " names itself; messages go to other ranks"));
  }
}

void Arguments::check_root(int root) const {
  check_rank(Fabric::Call::kBroadcast, root);
}

void Arguments::check_sizes(Fabric::Call call, std::span<const std::int64_t> sizes,
                            std::size_t total) const {
  const auto fail = [&](const std::string& what) {
    throw core::UsageError(core::concat("[", to_string(call), "] ", what));
  };
  if (sizes.size() != static_cast<std::size_t>(size_)) {
    fail(core::concat(sizes.size(), " sizes for ", size_, " ranks; there is one a rank"));
  }
  auto left = static_cast<std::int64_t>(total);
  for (const std::int64_t size : sizes) {
    if (size < 0) fail(core::concat("a size of ", size, "; sizes are 0 or more"));
    if (size > left) fail(core::concat("the sizes come to more than the ", total, " bytes given"));
    left -= size;
  }
  if (left > 0) fail(core::concat("the sizes come to ", left, " less than the bytes given"));
}

void Arguments::check_all_gather(std::span<const std::byte> mine, std::span<const std::byte> all,
                                 std::span<const std::int64_t> sizes) const {
  check_sizes(Fabric::Call::kAllGather, sizes, all.size());
  const std::int64_t own = sizes[static_cast<std::size_t>(rank_)];
  if (static_cast<std::int64_t>(mine.size()) != own) {
    throw core::UsageError(core::concat("[all_gather] rank ", rank_, " gives ", mine.size(),
                                        " bytes, and the list of sizes says ", own));
  }
}

void Arguments::check_all_to_all(std::span<const std::byte> out,
                                 std::span<const std::int64_t> out_sizes,
                                 std::span<const std::byte> in,
                                 std::span<const std::int64_t> in_sizes) const {
  check_sizes(Fabric::Call::kAllToAll, out_sizes, out.size());
  check_sizes(Fabric::Call::kAllToAll, in_sizes, in.size());
  const auto own = static_cast<std::size_t>(rank_);
  if (out_sizes[own] != in_sizes[own]) {
    throw core::UsageError(core::concat("[all_to_all] rank ", rank_, " gives itself ",
                                        out_sizes[own], " bytes and takes ", in_sizes[own]));
  }
  if (overlap(out, in)) {
    throw core::UsageError("[all_to_all] `out` and `in` overlap; they are separate arrays");
  }
}

void check_place(Fabric::Call call, std::span<const std::byte> data, const core::Stream& stream) {
  if (data.empty() || !stream.device().is_cuda()) return;
  const core::Device place = core::cuda::device_of(data.data());
  if (place == stream.device()) return;
  throw core::UsageError(core::concat(
      "[", to_string(call), "] an array on ", core::to_string(place), " for a stream of ",
      core::to_string(stream.device()), "; arrays lie on the device of the stream"));
}

}  // namespace scalecom::comm
