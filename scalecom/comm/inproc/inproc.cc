#include "scalecom/comm/inproc/inproc.h"

#include <algorithm>
#include <exception>
#include <numeric>
#include <thread>
#include <utility>

#include "scalecom/comm/inproc/team.h"
#include "scalecom/core/error.h"
#include "scalecom/core/text.h"

namespace scalecom::comm::inproc {
namespace {

/// About what a core has in cache of its own, so that sums find what was just copied.
constexpr std::int64_t kPieceBytes = std::int64_t{1} << 20;
/// Many times what a GPU does in the time that its kernels' launches take.
constexpr std::int64_t kDevicePieceBytes = std::int64_t{32} << 20;

std::vector<int> numbers_below(int size) {
  std::vector<int> numbers(static_cast<std::size_t>(size));
  std::iota(numbers.begin(), numbers.end(), 0);
  return numbers;
}

class InprocFabric final : public Fabric {
 public:
  InprocFabric(std::shared_ptr<Team> team, int rank) : team_(std::move(team)), rank_(rank) {}
  ~InprocFabric() override { team_->leave(rank_); }

  int rank() const override { return rank_; }
  int size() const override { return team_->size(); }
  bool takes(core::Device /*device*/) const override { return true; }

  void exchange(std::span<const Outgoing> out, std::span<const Incoming> in,
                const Operation& operation) override {
    team_->exchange(rank_, out, in, operation);
  }
  void send(const Outgoing& message, const Operation& operation) override {
    team_->send(rank_, message, operation);
  }
  void receive(const Incoming& message, const Operation& operation) override {
    team_->receive(rank_, message, operation);
  }

  std::unique_ptr<Fabric> group(const std::vector<int>& members,
                                const Operation& operation) override {
    auto team =
        team_->group(rank_, members, numbers_below(static_cast<int>(members.size())), operation);
    const auto own = std::find(members.begin(), members.end(), rank_);
    return std::make_unique<InprocFabric>(std::move(team), static_cast<int>(own - members.begin()));
  }

  std::int64_t piece_bytes(core::Device device) const override {
    return device.is_cuda() ? kDevicePieceBytes : kPieceBytes;
  }

 private:
  std::shared_ptr<Team> team_;
  int rank_;
};

/// The failure to report, of those of all ranks.
std::exception_ptr choose(const std::vector<std::exception_ptr>& failures) {
  std::exception_ptr about_peers;
  for (const std::exception_ptr& failure : failures) {
    if (!failure) continue;
    try {
      std::rethrow_exception(failure);
    } catch (const core::PeerError&) {
      if (!about_peers) about_peers = failure;
    } catch (...) {
      return failure;
    }
  }
  return about_peers;
}

}  // namespace

std::vector<std::unique_ptr<Fabric>> make_fabrics(int size) {
  if (size < 1) {
    throw core::UsageError(
        core::concat("[inproc] a world of ", size, " ranks was asked for; it has 1 or more"));
  }
  const auto team = std::make_shared<Team>(numbers_below(size));
  std::vector<std::unique_ptr<Fabric>> fabrics;
  fabrics.reserve(static_cast<std::size_t>(size));
  for (int rank = 0; rank < size; ++rank) {
    fabrics.push_back(std::make_unique<InprocFabric>(team, rank));
  }
  return fabrics;
}

std::vector<std::unique_ptr<Communicator>> make_world(int size,
                                                      std::chrono::milliseconds deadline) {
  std::vector<std::unique_ptr<Communicator>> world;
  for (auto& fabric : make_fabrics(size)) {
    world.push_back(make_communicator(std::move(fabric), deadline));
  }
  return world;
}

void run(int size, const std::function<void(Communicator&)>& body,
         std::chrono::milliseconds deadline) {
  run_ends(make_world(size, deadline), body);
}

void run_ends(std::vector<std::unique_ptr<Communicator>> world,
              const std::function<void(Communicator&)>& body) {
  std::vector<std::exception_ptr> failures(world.size());
  {
    std::vector<std::jthread> threads;
    threads.reserve(world.size());
    // Each thread owns its end, so that the others learn at once when it is gone. Should a thread
    // not start, the ends that are left go first, with the same effect, and the joins come after.
    auto ends = std::move(world);
    for (std::size_t rank = 0; rank < failures.size(); ++rank) {
      threads.emplace_back(
          [&body, &failure = failures[rank], end = std::move(ends[rank])]() mutable {
            try {
              const std::unique_ptr<Communicator> own = std::move(end);
              body(*own);
            } catch (...) {
              failure = std::current_exception();
            }
          });
    }
  }
  if (const std::exception_ptr failure = choose(failures)) std::rethrow_exception(failure);
}

}  // namespace scalecom::comm::inproc
