#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "scalecom/comm/link.h"
#include "scalecom/comm/mpi/link.h"

namespace scalecom::comm::mpi {

/// One rank's end of a group of ranks, for the messages that travel by MPI.
class Endpoint final : public comm::Endpoint {
 public:
  /// As Link::endpoint(), which makes it.
  Endpoint(std::shared_ptr<Link> link, std::vector<Address> ranks, int rank, std::int64_t context);
  ~Endpoint() override { discard(); }
  Endpoint(const Endpoint&) = delete;
  Endpoint& operator=(const Endpoint&) = delete;

  void start(std::span<const Outgoing> out, std::span<const Incoming> in,
             const Operation& operation) override;
  void finish(const Operation& operation) override;
  void abandon() override { discard(); }

 private:
  /// What a request stands for.
  struct Pending {
    int peer;
    std::size_t bytes;
    bool incoming;
  };

  int tag_of(int from, int to, int call) const;
  void discard();
  void start(const Pending& pending, void* data, const Operation& operation);
  /// One look at all requests; whether all are done.
  bool test(const Operation& operation);
  void check(const Pending& pending, const MPI_Status& status, bool has_error,
             const Operation& operation) const;
  /// Where a peer that is waited for is instead, as far as its messages tell.
  std::string whereabouts(const std::vector<int>& peers, const Operation& operation) const;
  std::vector<int> peers_waited_for() const;

  std::shared_ptr<Link> link_;
  const Tags tags_;

  std::vector<MPI_Request> requests_;
  std::vector<Pending> pending_;
  std::vector<int> done_;
  std::vector<MPI_Status> statuses_;
  std::int64_t bytes_ = 0;
};

}  // namespace scalecom::comm::mpi
