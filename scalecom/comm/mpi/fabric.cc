#include <algorithm>
#include <utility>

#include "scalecom/comm/mpi/endpoint.h"
#include "scalecom/comm/mpi/mpi.h"

namespace scalecom::comm::mpi {
namespace {

class MpiFabric final : public Fabric {
 public:
  /// `next_context` is shared by all fabrics that this one's groups descend from.
  MpiFabric(std::shared_ptr<Link> link, std::vector<Address> ranks, int rank, std::int64_t context,
            std::shared_ptr<std::int64_t> next_context)
      : link_(std::move(link)),
        endpoint_(link_, std::move(ranks), rank, context),
        next_context_(std::move(next_context)) {}

  int rank() const override { return endpoint_.rank(); }
  int size() const override { return endpoint_.size(); }

  void exchange(std::span<const Outgoing> out, std::span<const Incoming> in,
                const Operation& operation) override {
    endpoint_.start(out, in, operation);
    endpoint_.finish(operation);
  }
  void send(const Outgoing& message, const Operation& operation) override {
    exchange({&message, 1}, {}, operation);
  }
  void receive(const Incoming& message, const Operation& operation) override {
    exchange({}, {&message, 1}, operation);
  }

  std::unique_ptr<Fabric> group(const std::vector<int>& members,
                                const Operation& operation) override {
    const std::int64_t context = agree_on_context(*this, members, *next_context_, operation);
    std::vector<Address> ranks;
    ranks.reserve(members.size());
    for (const int member : members) {
      ranks.push_back(endpoint_.ranks()[static_cast<std::size_t>(member)]);
    }
    const auto own = std::find(members.begin(), members.end(), rank()) - members.begin();
    return std::make_unique<MpiFabric>(link_, std::move(ranks), static_cast<int>(own), context,
                                       next_context_);
  }

  std::int64_t piece_bytes(core::Device /*device*/) const override { return kScratchBytes; }

 private:
  std::shared_ptr<Link> link_;
  Endpoint endpoint_;
  std::shared_ptr<std::int64_t> next_context_;
};

}  // namespace

std::unique_ptr<Fabric> make_fabric(std::chrono::milliseconds deadline) {
  auto link = Link::open(deadline, Link::kOneEach);
  std::vector<Address> ranks;
  ranks.reserve(static_cast<std::size_t>(link->processes()));
  for (int process = 0; process < link->processes(); ++process) ranks.push_back({process, 0});
  const int rank = link->process();
  return std::make_unique<MpiFabric>(std::move(link), std::move(ranks), rank, 0,
                                     std::make_shared<std::int64_t>(1));
}

std::unique_ptr<Communicator> make_communicator(std::chrono::milliseconds deadline) {
  return comm::make_communicator(make_fabric(deadline), deadline);
}

}  // namespace scalecom::comm::mpi
