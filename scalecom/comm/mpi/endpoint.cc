#include "scalecom/comm/mpi/endpoint.h"

#include <algorithm>
#include <utility>

#include "scalecom/core/error.h"
#include "scalecom/core/text.h"

namespace scalecom::comm::mpi {
namespace {

/// MPI counts in int; longer messages go in parts of this size.
constexpr std::size_t kLargestMessage = std::size_t{64} << 20;

template <typename Data, typename Use>
void in_parts(std::span<Data> data, const Use& use) {
  do {
    const std::size_t bytes = std::min(data.size(), kLargestMessage);
    use(data.first(bytes));
    data = data.subspan(bytes);
  } while (!data.empty());
}

}  // namespace

Endpoint::Endpoint(std::shared_ptr<Link> link, std::vector<Address> ranks, int rank,
                   std::int64_t context)
    : comm::Endpoint(std::move(ranks), rank),
      link_(std::move(link)),
      tags_(link_->threads(), context, link_->largest_tag()) {}

int Endpoint::tag_of(int from, int to, int call) const {
  return tags_.of(address(from), address(to), call);
}

void Endpoint::start(std::span<const Outgoing> out, std::span<const Incoming> in,
                     const Operation& operation) {
  try {
    // Receives first: what is expected needs no buffer of MPI's when it comes.
    for (const Incoming& message : in) {
      in_parts(message.data, [&](std::span<std::byte> part) {
        start({message.peer, part.size(), true}, part.data(), operation);
      });
    }
    for (const Outgoing& message : out) {
      in_parts(message.data, [&](std::span<const std::byte> part) {
        // MPI only reads what it sends; the request has one type for both ways.
        start({message.peer, part.size(), false}, const_cast<std::byte*>(part.data()), operation);
      });
    }
  } catch (...) {
    discard();
    throw;
  }
}

void Endpoint::start(const Pending& pending, void* data, const Operation& operation) {
  const int call = Tags::code_of(operation.call);
  const int tag =
      pending.incoming ? tag_of(pending.peer, rank(), call) : tag_of(rank(), pending.peer, call);
  const int process = address(pending.peer).process;
  const int bytes = static_cast<int>(pending.bytes);
  MPI_Request& request = requests_.emplace_back(MPI_REQUEST_NULL);
  pending_.push_back(pending);
  bytes_ += bytes;
  const std::lock_guard lock(mutex());
  const int code = pending.incoming
                       ? MPI_Irecv(data, bytes, MPI_BYTE, process, tag, link_->comm(), &request)
                       : MPI_Isend(data, bytes, MPI_BYTE, process, tag, link_->comm(), &request);
  if (code != MPI_SUCCESS) {
    throw core::PeerError(failure(
        operation.call, core::concat("message with rank ", pending.peer, ": ", error_text(code))));
  }
}

void Endpoint::finish(const Operation& operation) {
  try {
    for (Patience patience(bytes_, link_->threads()); !test(operation); patience.pause()) {
      if (Fabric::Clock::now() < operation.until) continue;
      const std::vector<int> peers = peers_waited_for();
      throw core::PeerError(late(operation, peers, whereabouts(peers, operation)));
    }
  } catch (...) {
    discard();
    throw;
  }
  requests_.clear();
  pending_.clear();
  bytes_ = 0;
}

bool Endpoint::test(const Operation& operation) {
  if (requests_.empty()) return true;
  done_.resize(requests_.size());
  statuses_.resize(requests_.size());
  int count = 0;
  const std::lock_guard lock(mutex());
  const int code = MPI_Testsome(static_cast<int>(requests_.size()), requests_.data(), &count,
                                done_.data(), statuses_.data());
  if (code != MPI_SUCCESS && code != MPI_ERR_IN_STATUS) {
    throw core::PeerError(failure(operation.call, error_text(code)));
  }
  // MPI_UNDEFINED: none is left.
  if (count == MPI_UNDEFINED) return true;
  for (std::size_t i = 0; i < static_cast<std::size_t>(count); ++i) {
    const Pending& pending = pending_[static_cast<std::size_t>(done_[i])];
    check(pending, statuses_[i], code == MPI_ERR_IN_STATUS, operation);
  }
  return std::all_of(requests_.begin(), requests_.end(),
                     [](MPI_Request request) { return request == MPI_REQUEST_NULL; });
}

void Endpoint::check(const Pending& pending, const MPI_Status& status, bool has_error,
                     const Operation& operation) const {
  int error_class = MPI_SUCCESS;
  if (has_error) MPI_Error_class(status.MPI_ERROR, &error_class);
  int count = static_cast<int>(pending.bytes);
  if (pending.incoming && error_class == MPI_SUCCESS) MPI_Get_count(&status, MPI_BYTE, &count);
  if (error_class == MPI_SUCCESS && count == static_cast<int>(pending.bytes)) return;
  std::string what =
      core::concat("message with rank ", pending.peer, ": ", error_text(status.MPI_ERROR));
  if (error_class == MPI_SUCCESS || error_class == MPI_ERR_TRUNCATE) {
    what =
        core::concat("rank ", rank(), " expects ", pending.bytes, " bytes from rank ", pending.peer,
                     ", which sends ", error_class == MPI_SUCCESS ? std::to_string(count) : "more");
  }
  throw core::PeerError(failure(operation.call, what));
}

std::vector<int> Endpoint::peers_waited_for() const {
  std::vector<int> peers;
  for (std::size_t i = 0; i < requests_.size(); ++i) {
    if (requests_[i] != MPI_REQUEST_NULL) peers.push_back(pending_[i].peer);
  }
  std::sort(peers.begin(), peers.end());
  peers.erase(std::unique(peers.begin(), peers.end()), peers.end());
  return peers;
}

std::string Endpoint::whereabouts(const std::vector<int>& peers, const Operation& operation) const {
  std::string text;
  const std::lock_guard lock(mutex());
  for (const int peer : peers) {
    const int process = address(peer).process;
    for (int call = 0; call < Tags::kMessageBetweenTwo; ++call) {
      int found = 0;
      if (call == Tags::code_of(operation.call)) continue;
      MPI_Iprobe(process, tag_of(peer, rank(), call), link_->comm(), &found, MPI_STATUS_IGNORE);
      if (found == 0) continue;
      text += core::concat(", rank ", peer, " being in ",
                           comm::to_string(static_cast<Fabric::Call>(call)));
    }
  }
  return text;
}

void Endpoint::discard() {
  if (requests_.empty()) return;
  link_->set_broken();
  const std::lock_guard lock(mutex());
  for (std::size_t i = 0; i < requests_.size(); ++i) {
    if (requests_[i] == MPI_REQUEST_NULL) continue;
    if (pending_[i].incoming) {
      int done = 0;
      MPI_Cancel(&requests_[i]);
      MPI_Test(&requests_[i], &done, MPI_STATUS_IGNORE);
      if (done != 0) continue;
    }
    MPI_Request_free(&requests_[i]);
  }
  requests_.clear();
  pending_.clear();
  bytes_ = 0;
}

}  // namespace scalecom::comm::mpi
