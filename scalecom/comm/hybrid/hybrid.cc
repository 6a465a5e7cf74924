#include "scalecom/comm/hybrid/hybrid.h"

#include <algorithm>
#include <utility>

#include "scalecom/comm/inproc/team.h"
#include "scalecom/comm/mpi/mpi.h"
#include "scalecom/comm/traffic.h"
#include "scalecom/core/error.h"
#include "scalecom/core/text.h"

namespace scalecom::comm::hybrid {
namespace {

using inproc::Team;

/// Scratch of all threads of a process together, as far as pieces do not become too small.
constexpr std::int64_t kSmallestPieceBytes = std::int64_t{1} << 20;

/// Peers in the same process are served by the team, others by the link.
class HybridFabric final : public Fabric {
 public:
  HybridFabric(std::shared_ptr<Link> link, std::vector<Address> ranks, int rank,
               std::int64_t context, std::shared_ptr<std::int64_t> next_context,
               std::shared_ptr<Team> team)
      : link_(std::move(link)),
        endpoint_(link_->endpoint(std::move(ranks), rank, context)),
        next_context_(std::move(next_context)),
        team_(std::move(team)),
        seats_(seats_of(*endpoint_)),
        seat_(seats_[static_cast<std::size_t>(rank)]) {}
  ~HybridFabric() override { team_->leave(seat_); }

  int rank() const override { return endpoint_->rank(); }
  int size() const override { return endpoint_->size(); }

  void exchange(std::span<const Outgoing> out, std::span<const Incoming> in,
                const Operation& operation) override;
  void send(const Outgoing& message, const Operation& operation) override;
  void receive(const Incoming& message, const Operation& operation) override;
  std::unique_ptr<Fabric> group(const std::vector<int>& members,
                                const Operation& operation) override;

  std::int64_t piece_bytes(core::Device /*device*/) const override {
    return std::max(kScratchBytes / link_->threads(), kSmallestPieceBytes);
  }

  /// The ranks that live in the process of rank `rank`, in order.
  static std::vector<int> neighbours(const std::vector<Address>& ranks, int rank);

 private:
  static constexpr int kElsewhere = -1;

  static std::vector<int> seats_of(const Endpoint& endpoint);
  int seat_of(int rank) const { return seats_[static_cast<std::size_t>(rank)]; }

  /// Runs what waits for other processes; where it fails, the team is told.
  template <typename Body>
  void remotely(const Body& body);

  std::shared_ptr<Link> link_;
  std::unique_ptr<Endpoint> endpoint_;
  std::shared_ptr<std::int64_t> next_context_;
  std::shared_ptr<Team> team_;
  /// The seat of each rank in the team, or kElsewhere.
  const std::vector<int> seats_;
  const int seat_;

  std::vector<Outgoing> near_out_;
  std::vector<Outgoing> far_out_;
  std::vector<Incoming> near_in_;
  std::vector<Incoming> far_in_;
};

std::vector<int> HybridFabric::neighbours(const std::vector<Address>& ranks, int rank) {
  std::vector<int> found;
  for (std::size_t r = 0; r < ranks.size(); ++r) {
    if (ranks[r].process == ranks[static_cast<std::size_t>(rank)].process) {
      found.push_back(static_cast<int>(r));
    }
  }
  return found;
}

std::vector<int> HybridFabric::seats_of(const Endpoint& endpoint) {
  std::vector<int> seats(endpoint.ranks().size(), kElsewhere);
  int seat = 0;
  for (const int rank : neighbours(endpoint.ranks(), endpoint.rank())) {
    seats[static_cast<std::size_t>(rank)] = seat++;
  }
  return seats;
}

template <typename Body>
void HybridFabric::remotely(const Body& body) {
  try {
    body();
  } catch (const std::exception& error) {
    team_->fail(error.what());
    throw;
  }
}

void HybridFabric::exchange(std::span<const Outgoing> out, std::span<const Incoming> in,
                            const Operation& operation) {
  const auto sort_out = [this](const auto& messages, auto& near, auto& far) {
    near.clear();
    far.clear();
    for (auto message : messages) {
      const int seat = seat_of(message.peer);
      if (seat == kElsewhere) {
        far.push_back(message);
      } else {
        message.peer = seat;
        near.push_back(message);
      }
    }
  };
  sort_out(out, near_out_, far_out_);
  sort_out(in, near_in_, far_in_);
  remotely([&] { endpoint_->start(far_out_, far_in_, operation); });
  try {
    team_->exchange(seat_, near_out_, near_in_, operation);
  } catch (...) {
    endpoint_->abandon();
    throw;
  }
  remotely([&] { endpoint_->finish(operation); });
}

void HybridFabric::send(const Outgoing& message, const Operation& operation) {
  if (const int seat = seat_of(message.peer); seat != kElsewhere) {
    team_->send(seat_, {seat, message.data}, operation);
    return;
  }
  remotely([&] {
    endpoint_->start({&message, 1}, {}, operation);
    endpoint_->finish(operation);
  });
}

void HybridFabric::receive(const Incoming& message, const Operation& operation) {
  if (const int seat = seat_of(message.peer); seat != kElsewhere) {
    team_->receive(seat_, {seat, message.data}, operation);
    return;
  }
  remotely([&] {
    endpoint_->start({}, {&message, 1}, operation);
    endpoint_->finish(operation);
  });
}

std::unique_ptr<Fabric> HybridFabric::group(const std::vector<int>& members,
                                            const Operation& operation) {
  const std::int64_t context = agree_on_context(*this, members, *next_context_, operation);
  std::vector<Address> ranks;
  ranks.reserve(members.size());
  for (const int member : members) {
    ranks.push_back(endpoint_->ranks()[static_cast<std::size_t>(member)]);
  }
  const auto own =
      static_cast<int>(std::find(members.begin(), members.end(), rank()) - members.begin());
  std::vector<int> new_ranks = neighbours(ranks, own);
  std::vector<int> seats;
  seats.reserve(new_ranks.size());
  for (const int r : new_ranks) seats.push_back(seat_of(members[static_cast<std::size_t>(r)]));
  auto team = team_->group(seat_, seats, std::move(new_ranks), operation);
  return std::make_unique<HybridFabric>(link_, std::move(ranks), own, context, next_context_,
                                        std::move(team));
}

}  // namespace

std::vector<std::unique_ptr<Communicator>> make_world(const std::shared_ptr<Link>& link, int size,
                                                      std::chrono::milliseconds deadline) {
  std::vector<Address> ranks;
  for (int process = 0; process < link->processes(); ++process) {
    const auto threads = static_cast<int>(share(size, link->processes(), process).size());
    for (int thread = 0; thread < threads; ++thread) ranks.push_back({process, thread});
  }

  const Share own = share(size, link->processes(), link->process());
  std::vector<std::unique_ptr<Communicator>> world;
  if (own.size() == 0) return world;
  const auto team =
      std::make_shared<Team>(HybridFabric::neighbours(ranks, static_cast<int>(own.begin)));
  for (std::int64_t rank = own.begin; rank < own.end; ++rank) {
    world.push_back(
        make_communicator(std::make_unique<HybridFabric>(link, ranks, static_cast<int>(rank), 0,
                                                         std::make_shared<std::int64_t>(1), team),
                          deadline));
  }
  return world;
}

std::vector<std::unique_ptr<Communicator>> make_world(int size,
                                                      std::chrono::milliseconds deadline) {
  if (size < 1) {
    throw core::UsageError(
        core::concat("[hybrid] a world of ", size, " ranks was asked for; it has 1 or more"));
  }
  return make_world(mpi::open_link(deadline, size), size, deadline);
}

}  // namespace scalecom::comm::hybrid
