#include "scalecom/torch/gloo_link.h"

#include <ATen/ops/from_blob.h>

#include <algorithm>
#include <limits>
#include <mutex>
#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>
#include <utility>

#include "scalecom/comm/traffic.h"
#include "scalecom/core/error.h"
#include "scalecom/core/text.h"
#include "scalecom/torch/first_line.h"

namespace scalecom::torch {
namespace {

using std::chrono::milliseconds;

constexpr std::int64_t kLargestTag = std::numeric_limits<std::int32_t>::max();

class GlooLink final : public comm::Link, public std::enable_shared_from_this<GlooLink> {
 public:
  GlooLink(c10::intrusive_ptr<c10d::ProcessGroupGloo> group, int ranks)
      // The first share is the longest.
      : group_(std::move(group)),
        threads_(static_cast<int>(comm::share(ranks, group_->getSize(), 0).size())) {}

  int process() const override { return group_->getRank(); }
  int processes() const override { return group_->getSize(); }
  int threads() const override { return threads_; }
  std::unique_ptr<comm::Endpoint> endpoint(std::vector<comm::Address> ranks, int rank,
                                           std::int64_t context) override;

  c10::intrusive_ptr<c10d::Work> send(std::span<const std::byte> data, int process, int tag) {
    // gloo only reads what it sends.
    auto tensors = view(const_cast<std::byte*>(data.data()), data.size());
    const std::lock_guard lock(mutex_);
    return group_->send(tensors, process, tag);
  }
  c10::intrusive_ptr<c10d::Work> receive(std::span<std::byte> data, int process, int tag) {
    auto tensors = view(data.data(), data.size());
    const std::lock_guard lock(mutex_);
    return group_->recv(tensors, process, tag);
  }

 private:
  static std::vector<at::Tensor> view(std::byte* data, std::size_t bytes) {
    return {at::from_blob(data, {static_cast<std::int64_t>(bytes)}, at::kByte)};
  }

  c10::intrusive_ptr<c10d::ProcessGroupGloo> group_;
  const int threads_;
  /// A process group's calls are not for several threads at once; what they begin is.
  std::mutex mutex_;
};

class GlooEndpoint final : public comm::Endpoint {
 public:
  GlooEndpoint(std::shared_ptr<GlooLink> link, std::vector<comm::Address> ranks, int rank,
               std::int64_t context)
      : comm::Endpoint(std::move(ranks), rank),
        link_(std::move(link)),
        tags_(link_->threads(), context, kLargestTag) {}

  void start(std::span<const Outgoing> out, std::span<const Incoming> in,
             const Operation& operation) override;
  void finish(const Operation& operation) override;
  void abandon() override { pending_.clear(); }

 private:
  struct Pending {
    int peer;
    c10::intrusive_ptr<c10d::Work> work;
  };

  int tag_of(int from, int to, const Operation& operation) const {
    return tags_.of(address(from), address(to), comm::Tags::code_of(operation.call));
  }
  void wait(Pending& pending, const Operation& operation) const;

  std::shared_ptr<GlooLink> link_;
  const comm::Tags tags_;
  std::vector<Pending> pending_;
};

[[noreturn]] void fail(int peer, const std::exception& error, const comm::Endpoint::Operation& of) {
  throw core::PeerError(comm::failure(
      of.call, core::concat("message with rank ", peer, ": ", first_line(error.what()))));
}

void GlooEndpoint::start(std::span<const Outgoing> out, std::span<const Incoming> in,
                         const Operation& operation) {
  int peer = rank();
  try {
    for (const Incoming& message : in) {
      peer = message.peer;
      pending_.push_back({peer, link_->receive(message.data, address(peer).process,
                                               tag_of(peer, rank(), operation))});
    }
    for (const Outgoing& message : out) {
      peer = message.peer;
      pending_.push_back({peer, link_->send(message.data, address(peer).process,
                                            tag_of(rank(), peer, operation))});
    }
  } catch (const std::exception& error) {
    abandon();
    fail(peer, error, operation);
  }
}

void GlooEndpoint::finish(const Operation& operation) {
  try {
    for (Pending& pending : pending_) wait(pending, operation);
  } catch (...) {
    abandon();
    throw;
  }
  pending_.clear();
}

void GlooEndpoint::wait(Pending& pending, const Operation& operation) const {
  const auto left = std::chrono::ceil<milliseconds>(operation.until - comm::Fabric::Clock::now());
  try {
    // No time at all would mean: for ever.
    pending.work->wait(std::max(left, milliseconds(1)));
  } catch (const std::exception& error) {
    if (comm::Fabric::Clock::now() < operation.until) fail(pending.peer, error, operation);
    throw core::PeerError(comm::late(operation, {pending.peer}));
  }
}

std::unique_ptr<comm::Endpoint> GlooLink::endpoint(std::vector<comm::Address> ranks, int rank,
                                                   std::int64_t context) {
  return std::make_unique<GlooEndpoint>(shared_from_this(), std::move(ranks), rank, context);
}

}  // namespace

std::shared_ptr<comm::Link> open_gloo_link(const c10::intrusive_ptr<c10d::Store>& store,
                                           int process, int processes, int ranks,
                                           milliseconds deadline) {
  try {
    auto group = c10::make_intrusive<c10d::ProcessGroupGloo>(
        store, process, processes, c10d::ProcessGroupGloo::Options::create_default(deadline));
    return std::make_shared<GlooLink>(std::move(group), ranks);
  } catch (const std::exception& error) {
    throw core::PeerError(core::concat("[torchrun] ", processes,
                                       " processes could not join over gloo within ",
                                       deadline.count(), " ms: ", first_line(error.what())));
  }
}

}  // namespace scalecom::torch
