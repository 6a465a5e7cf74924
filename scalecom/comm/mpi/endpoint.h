#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "scalecom/comm/mpi/link.h"

namespace scalecom::comm::mpi {

/// Where a rank lives.
struct Address {
  int process;
  int thread;
};

/// One rank's end of a group of ranks, for the messages that travel by MPI. A message's tag says
/// which group, which threads and which call it belongs to. The group is told by a number, its
/// context: any two ranks that share several groups have a different context for each.
class Endpoint {
 public:
  using Outgoing = Fabric::Outgoing;
  using Incoming = Fabric::Incoming;
  using Operation = Fabric::Operation;

  /// ranks[r] is where rank r of the group lives; this end is rank `rank`. UsageError for a context
  /// that does not fit into a tag.
  Endpoint(std::shared_ptr<Link> link, std::vector<Address> ranks, int rank, std::int64_t context);
  ~Endpoint() { abandon(); }
  Endpoint(const Endpoint&) = delete;
  Endpoint& operator=(const Endpoint&) = delete;

  const std::shared_ptr<Link>& link() const { return link_; }
  const std::vector<Address>& ranks() const { return ranks_; }
  int rank() const { return rank_; }
  int size() const { return static_cast<int>(ranks_.size()); }

  /// Sets messages on their way; finish() returns when all are done. Either throws PeerError, after
  /// which there is nothing on its way that could be stopped.
  void start(std::span<const Outgoing> out, std::span<const Incoming> in,
             const Operation& operation);
  void finish(const Operation& operation);

  /// Stops what start() began, as far as MPI can.
  void abandon();

 private:
  /// What a request stands for.
  struct Pending {
    int peer;
    std::size_t bytes;
    bool incoming;
  };

  int tag_of(int from, int to, int call) const;
  void start(const Pending& pending, void* data, const Operation& operation);
  /// One look at all requests; whether all are done.
  bool test(const Operation& operation);
  void check(const Pending& pending, const MPI_Status& status, bool has_error,
             const Operation& operation) const;
  /// Where a peer that is waited for is instead, as far as its messages tell.
  std::string whereabouts(const std::vector<int>& peers, const Operation& operation) const;
  std::vector<int> peers_waited_for() const;

  std::shared_ptr<Link> link_;
  const std::vector<Address> ranks_;
  const int rank_;
  const std::int64_t context_;
  const int thread_bits_;

  std::vector<MPI_Request> requests_;
  std::vector<Pending> pending_;
  std::vector<int> done_;
  std::vector<MPI_Status> statuses_;
  std::int64_t bytes_ = 0;
};

/// A context for a group that `members` of `fabric` are about to form; every rank of `fabric` calls
/// it. `next` is this rank's first unused context, over all its groups, and moves on.
std::int64_t agree_on_context(Fabric& fabric, const std::vector<int>& members, std::int64_t& next,
                              const Fabric::Operation& operation);

}  // namespace scalecom::comm::mpi
