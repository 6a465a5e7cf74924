#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "scalecom/core/stream.h"

namespace scalecom::comm {

/// What an exchange between processes brings to one of them at most. Each piece of a long array
/// costs a few latencies of the network, which this makes small beside its transfer.
constexpr std::int64_t kScratchBytes = std::int64_t{32} << 20;

/// What an engine has to offer for `collectives.h` to make a Communicator of it: one rank's end of
/// a set of ranks between which messages move. See Communicator for errors and deadlines.
class Fabric {
 public:
  struct Outgoing {
    int peer;
    std::span<const std::byte> data;
  };
  struct Incoming {
    int peer;
    std::span<std::byte> data;
  };
  using Clock = std::chrono::steady_clock;

  /// The call of the Communicator that a message belongs to. Ranks that meet in different calls are
  /// told so; a message of one call is never taken for one of another.
  enum class Call : std::uint8_t {
    kBroadcast,
    kAllReduce,
    kReduceScatter,
    kAllGather,
    kAllToAll,
    kBarrier,
    kSplit,
    kSend,
    kReceive,
  };
  struct Operation {
    Call call;
    std::chrono::milliseconds deadline;
    /// The moment after which nobody waits.
    Clock::time_point until;
    /// Its device holds the messages. Given a CUDA stream, an exchange takes its place in it.
    core::Stream stream{};
  };

  virtual ~Fabric() = default;

  virtual int rank() const = 0;
  virtual int size() const = 0;

  /// Whether messages may lie there.
  virtual bool takes(core::Device device) const { return !device.is_cuda(); }

  /// Moves messages between all ranks at once; every rank takes part, with or without messages.
  /// Between two ranks at most one message a call each way, never to oneself, none of them empty,
  /// and the sizes at both ends are equal. Returns when this rank's messages have arrived and its
  /// buffers are its own; for what is put on the operation's stream from then on, where that is
  /// CUDA's.
  virtual void exchange(std::span<const Outgoing> out, std::span<const Incoming> in,
                        const Operation& operation) = 0;

  /// One message between two ranks; nobody else takes part.
  virtual void send(const Outgoing& message, const Operation& operation) = 0;
  virtual void receive(const Incoming& message, const Operation& operation) = 0;

  /// A fabric of its own for `members` (ranks here, this one among them, in their new order). Every
  /// rank calls it, each with its own group's list; groups do not overlap.
  virtual std::unique_ptr<Fabric> group(const std::vector<int>& members,
                                        const Operation& operation) = 0;

  /// How many bytes an exchange should bring to a rank at most: collectives on long arrays go in
  /// pieces of about this size, so that scratch on `device` stays small. The same at every rank.
  virtual std::int64_t piece_bytes(core::Device device) const = 0;
};

/// "broadcast", "barrier", ...
const char* to_string(Fabric::Call call);

/// "rank 3", "ranks 0, 2, 5"
std::string rank_list(const std::vector<int>& ranks);

/// The text of a PeerError: "[all_reduce] `what`; this communicator can no longer be used".
std::string failure(Fabric::Call call, const std::string& what);

/// The same, for a deadline that passed before these ranks were heard of; `note` follows them.
std::string late(const Fabric::Operation& operation, const std::vector<int>& ranks,
                 const std::string& note = {});

/// For a call that is not even tried, because of an earlier failure.
std::string already_failed(Fabric::Call call, const std::string& cause);

}  // namespace scalecom::comm
