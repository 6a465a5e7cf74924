#pragma once

#include <array>
#include <cstdint>

namespace scalecom::comm {

/// Bytes that one rank sends and receives, and in how many calls that move any, one after the
/// other: each costs latencies of the network, however little it moves.
struct Traffic {
  std::int64_t sent = 0;
  std::int64_t received = 0;
  std::int64_t calls = 0;

  Traffic& operator+=(const Traffic& other) {
    sent += other.sent;
    received += other.received;
    calls += other.calls;
    return *this;
  }
  friend Traffic operator+(Traffic a, const Traffic& b) { return a += b; }
  friend Traffic operator-(const Traffic& a, const Traffic& b) {
    return {a.sent - b.sent, a.received - b.received, a.calls - b.calls};
  }
  bool operator==(const Traffic&) const = default;
};

enum class Call : std::uint8_t {
  kBroadcast,
  kAllReduce,
  kReduceScatter,
  kAllGather,
  kAllToAll,
  kSendReceive,
};
constexpr int kCalls = 6;

/// "broadcast", "all_reduce", ...
const char* to_string(Call call);

/// Traffic by kind of call.
struct Counters {
  std::array<Traffic, kCalls> by_call{};

  Traffic& operator[](Call call) { return by_call[static_cast<std::size_t>(call)]; }
  const Traffic& operator[](Call call) const { return by_call[static_cast<std::size_t>(call)]; }
  Traffic total() const;

  Counters& operator+=(const Counters& other);
  friend Counters operator-(Counters a, const Counters& b) {
    for (int i = 0; i < kCalls; ++i) {
      const auto at = static_cast<std::size_t>(i);
      a.by_call[at] = a.by_call[at] - b.by_call[at];
    }
    return a;
  }
  bool operator==(const Counters&) const = default;
};

/// The part of `elements` things that rank `rank` of `size` looks after: [begin, end). Shares
/// differ by at most one and follow one another.
struct Share {
  std::int64_t begin = 0;
  std::int64_t end = 0;
  std::int64_t size() const { return end - begin; }
};
Share share(std::int64_t elements, int size, int rank);

/// One call that moves so many bytes.
constexpr Traffic one_call(std::int64_t sent, std::int64_t received) {
  return {sent, received, sent + received > 0 ? 1 : 0};
}

/// What one call costs, to the byte; the collectives are held to these by their tests.
///
/// all_reduce: every rank's share goes to its owner, and its sum comes back: 2(n-1)/n of the
/// payload a rank, sent and received alike, when the shares are equal.
Traffic all_reduce_traffic(std::int64_t floats, int size, int rank);
Traffic reduce_scatter_traffic(std::int64_t floats, int size, int rank);
/// broadcast: the root deals out the shares and they are all-gathered, so that what any one rank
/// sends and receives together is 2(n-1)/n of the payload at most, in two hops.
Traffic broadcast_traffic(std::int64_t bytes, int size, int rank, int root);
/// all_gather of `mine` bytes here and `all` bytes in total.
Traffic all_gather_traffic(std::int64_t mine, std::int64_t all, int size);

}  // namespace scalecom::comm
