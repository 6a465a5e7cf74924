#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "scalecom/comm/fabric.h"

/// What engines of several processes share: see hybrid/hybrid.h.
namespace scalecom::comm {

/// Where a rank lives.
struct Address {
  int process;
  int thread;
};

/// One rank's end of a group of ranks, for the messages that travel between processes.
class Endpoint {
 public:
  using Outgoing = Fabric::Outgoing;
  using Incoming = Fabric::Incoming;
  using Operation = Fabric::Operation;

  /// ranks[r] is where rank r of the group lives; this end is rank `rank`.
  Endpoint(std::vector<Address> ranks, int rank) : ranks_(std::move(ranks)), rank_(rank) {}
  virtual ~Endpoint() = default;
  Endpoint(const Endpoint&) = delete;
  Endpoint& operator=(const Endpoint&) = delete;

  const std::vector<Address>& ranks() const { return ranks_; }
  int rank() const { return rank_; }
  int size() const { return static_cast<int>(ranks_.size()); }

  /// Sets messages on their way; finish() returns when all are done. Either throws PeerError, after
  /// which there is nothing on its way that could be stopped.
  virtual void start(std::span<const Outgoing> out, std::span<const Incoming> in,
                     const Operation& operation) = 0;
  virtual void finish(const Operation& operation) = 0;

  /// Stops what start() began, as far as the engine can.
  virtual void abandon() = 0;

 protected:
  const Address& address(int rank) const { return ranks_[static_cast<std::size_t>(rank)]; }

 private:
  const std::vector<Address> ranks_;
  const int rank_;
};

/// The processes between which messages move, for one world of ranks.
class Link {
 public:
  virtual ~Link() = default;

  virtual int process() const = 0;
  virtual int processes() const = 0;
  /// The most ranks that any one process has.
  virtual int threads() const = 0;

  /// An end of a group. The group is told by a number, its context: any two ranks that share
  /// several groups have a different context for each. UsageError for a context that does not fit
  /// into a tag.
  virtual std::unique_ptr<Endpoint> endpoint(std::vector<Address> ranks, int rank,
                                             std::int64_t context) = 0;
};

/// What a message carries for its receiver to know it by: which group, which threads and which call
/// it belongs to.
class Tags {
 public:
  /// Calls in a tag: those below this, and messages between two. A send is met by a receive, so the
  /// two are one.
  static constexpr int kMessageBetweenTwo = static_cast<int>(Fabric::Call::kSend);
  static int code_of(Fabric::Call call);

  /// UsageError where a group of this context cannot be told within `largest`.
  Tags(int threads, std::int64_t context, std::int64_t largest);
  int of(const Address& from, const Address& to, int call) const;

 private:
  const std::int64_t context_;
  const int thread_bits_;
};

/// A context for a group that `members` of `fabric` are about to form; every rank of `fabric` calls
/// it. `next` is this rank's first unused context, over all its groups, and moves on.
std::int64_t agree_on_context(Fabric& fabric, const std::vector<int>& members, std::int64_t& next,
                              const Fabric::Operation& operation);

}  // namespace scalecom::comm
