#include "scalecom/comm/link.h"

#include <algorithm>
#include <bit>

#include "scalecom/core/error.h"
#include "scalecom/core/text.h"

namespace scalecom::comm {
namespace {

constexpr int kCallBits = 3;
static_assert(Tags::kMessageBetweenTwo < (1 << kCallBits));

}  // namespace

int Tags::code_of(Fabric::Call call) {
  return std::min(static_cast<int>(call), kMessageBetweenTwo);
}

Tags::Tags(int threads, std::int64_t context, std::int64_t largest)
    : context_(context),
      thread_bits_(static_cast<int>(std::bit_width(static_cast<unsigned>(threads - 1)))) {
  if (context >= (largest + 1) >> (kCallBits + 2 * thread_bits_)) {
    throw core::UsageError(
        core::concat("[split] no more than ", context, " groups can be made over this engine"));
  }
}

int Tags::of(const Address& from, const Address& to, int call) const {
  const std::int64_t threads = (std::int64_t{from.thread} << thread_bits_) | to.thread;
  return static_cast<int>((((context_ << (2 * thread_bits_)) | threads) << kCallBits) | call);
}

std::int64_t agree_on_context(Fabric& fabric, const std::vector<int>& members, std::int64_t& next,
                              const Fabric::Operation& operation) {
  const std::int64_t mine = next;
  std::vector<std::int64_t> theirs(members.size(), mine);
  std::vector<Fabric::Outgoing> out;
  std::vector<Fabric::Incoming> in;
  for (std::size_t i = 0; i < members.size(); ++i) {
    if (members[i] == fabric.rank()) continue;
    out.push_back({members[i], std::as_bytes(std::span(&mine, 1))});
    in.push_back({members[i], std::as_writable_bytes(std::span(&theirs[i], 1))});
  }
  fabric.exchange(out, in, operation);
  const std::int64_t context = *std::max_element(theirs.begin(), theirs.end());
  next = context + 1;
  return context;
}

}  // namespace scalecom::comm
