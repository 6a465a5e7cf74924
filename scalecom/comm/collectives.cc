#include "scalecom/comm/collectives.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>

#include "scalecom/comm/arguments.h"
#include "scalecom/comm/sum.h"
#include "scalecom/core/array.h"
#include "scalecom/core/error.h"
#include "scalecom/core/text.h"
#include "scalecom/kernels/cuda/exchange.h"

namespace scalecom::comm {
namespace {

void copy_bytes(std::span<const std::byte> from, std::byte* to, const core::Stream& stream) {
  if (from.empty() || from.data() == to) return;
  if (stream.device().is_cuda()) {
    core::cuda::copy(to, from.data(), static_cast<std::int64_t>(from.size()), stream);
  } else {
    std::memmove(to, from.data(), from.size());
  }
}

class Collectives final : public Communicator {
 public:
  Collectives(std::unique_ptr<Fabric> fabric, std::chrono::milliseconds deadline);

  int rank() const override { return rank_; }
  int size() const override { return size_; }

  void broadcast(std::span<std::byte> data, int root, const core::Stream& stream) override;
  void all_reduce(std::span<float> data, const core::Stream& stream) override;
  void reduce_scatter(std::span<float> data, const core::Stream& stream) override;
  void all_gather(std::span<const std::byte> mine, std::span<std::byte> all,
                  std::span<const std::int64_t> sizes, const core::Stream& stream) override;
  void all_to_all(std::span<const std::byte> out, std::span<const std::int64_t> out_sizes,
                  std::span<std::byte> in, std::span<const std::int64_t> in_sizes,
                  const core::Stream& stream) override;
  void send(std::span<const std::byte> data, int to, const core::Stream& stream) override;
  void receive(std::span<std::byte> data, int from, const core::Stream& stream) override;
  void barrier() override;
  std::unique_ptr<Communicator> split(int color, int key) override;

  std::chrono::milliseconds deadline() const override { return deadline_; }
  void set_deadline(std::chrono::milliseconds deadline) override;
  const Counters& counters() const override { return counters_; }

 private:
  using Operation = Fabric::Operation;

  /// The start of every call: refused where an earlier one failed; its deadline runs from here.
  Operation begin(Fabric::Call call, const core::Stream& stream = {}) const;
  /// Runs what moves messages; a failure that is not the caller's mistake is the last.
  template <typename Body>
  void guard(const Body& body);
  /// The same, and counts as one call what `body(count)` moves.
  template <typename Body>
  void guard(Call call, const Body& body);

  /// The messages of the next exchange; empty ones are not sent. An exchange clears them.
  void give(int peer, std::span<const std::byte> data);
  void take(int peer, std::span<std::byte> data);
  void exchange(const Operation& operation, Traffic& count);
  /// Peers in the order in which messages are best listed: not all to the same rank first.
  int peer(int step) const { return (rank_ + step) % size_; }

  /// Sums the own share of `data`, and gives the sums to all where `everywhere`.
  void reduce(std::span<float> data, const Operation& operation, Traffic& count, bool everywhere);
  void reduce_piece(std::span<float> data, std::int64_t offset, std::int64_t piece,
                    const Operation& operation, Traffic& count);
  /// Sub-range [offset, offset + piece) of rank r's share.
  Share piece_of(std::int64_t floats, int r, std::int64_t offset, std::int64_t piece) const;

  std::unique_ptr<Fabric> fabric_;
  const int rank_;
  const int size_;
  const Arguments arguments_;
  std::chrono::milliseconds deadline_;
  Counters counters_;
  /// What the first failure said; empty as long as all is well.
  std::string failure_;

  std::vector<Fabric::Outgoing> out_;
  std::vector<Fabric::Incoming> in_;
  /// What the peers sent of the piece that is being summed, and where each rank's part lies.
  core::Array<float> scratch_;
  std::vector<const float*> parts_;
  std::vector<std::byte> tokens_;
};

Collectives::Collectives(std::unique_ptr<Fabric> fabric, std::chrono::milliseconds deadline)
    : fabric_(std::move(fabric)),
      rank_(fabric_->rank()),
      size_(fabric_->size()),
      arguments_(rank_, size_),
      deadline_(checked_deadline(deadline)) {
  out_.reserve(static_cast<std::size_t>(size_));
  in_.reserve(static_cast<std::size_t>(size_));
  parts_.resize(static_cast<std::size_t>(size_));
  tokens_.resize(static_cast<std::size_t>(size_));
}

void Collectives::set_deadline(std::chrono::milliseconds deadline) {
  deadline_ = checked_deadline(deadline);
}

Collectives::Operation Collectives::begin(Fabric::Call call, const core::Stream& stream) const {
  const auto refuse = [&](const std::string& what) {
    throw core::UsageError(core::concat("[", to_string(call), "] ", what));
  };
  if (!fabric_->takes(stream.device())) {
    refuse(core::concat("these ranks take arrays in host memory, not on ",
                        core::to_string(stream.device()),
                        "; ranks of comm/nccl, or of one process (comm/inproc), take a GPU's"));
  }
  if (size_ > 1 && core::cuda::is_capturing(stream)) {
    refuse(
        "the stream is being captured, and ranks of one process meet on the host, which a "
        "graph cannot repeat; capture calls of a world of one, or of comm/nccl");
  }
  if (!failure_.empty()) throw core::PeerError(already_failed(call, failure_));
  return {call, deadline_, Fabric::Clock::now() + deadline_, stream};
}

template <typename Body>
void Collectives::guard(const Body& body) {
  try {
    body();
  } catch (const core::UsageError&) {
    throw;
  } catch (const std::exception& error) {
    failure_ = error.what();
    throw;
  }
}

template <typename Body>
void Collectives::guard(Call call, const Body& body) {
  guard([&] {
    Traffic moved;
    body(moved);
    counters_[call] += one_call(moved.sent, moved.received);
  });
}

void Collectives::give(int peer, std::span<const std::byte> data) {
  if (!data.empty()) out_.push_back({peer, data});
}

void Collectives::take(int peer, std::span<std::byte> data) {
  if (!data.empty()) in_.push_back({peer, data});
}

void Collectives::exchange(const Operation& operation, Traffic& count) {
  fabric_->exchange(out_, in_, operation);
  for (const Fabric::Outgoing& message : out_) {
    count.sent += static_cast<std::int64_t>(message.data.size());
  }
  for (const Fabric::Incoming& message : in_) {
    count.received += static_cast<std::int64_t>(message.data.size());
  }
  out_.clear();
  in_.clear();
}

void Collectives::broadcast(std::span<std::byte> data, int root, const core::Stream& stream) {
  const Operation operation = begin(Fabric::Call::kBroadcast, stream);
  arguments_.check_root(root);
  check_place(operation.call, data, stream);
  if (size_ == 1) return;
  const auto bytes = static_cast<std::int64_t>(data.size());
  const auto piece = [&](int r) { return part(data, share(bytes, size_, r)); };
  guard(Call::kBroadcast, [&](Traffic& count) {
    if (rank_ == root) {
      for (int step = 1; step < size_; ++step) give(peer(step), piece(peer(step)));
    } else {
      take(root, piece(rank_));
    }
    exchange(operation, count);
    for (int step = 1; step < size_; ++step) {
      if (peer(step) != root) give(peer(step), piece(rank_));
      if (rank_ != root) take(peer(step), piece(peer(step)));
    }
    exchange(operation, count);
  });
}

void Collectives::all_reduce(std::span<float> data, const core::Stream& stream) {
  const Operation operation = begin(Fabric::Call::kAllReduce, stream);
  check_place(operation.call, std::as_bytes(data), stream);
  guard(Call::kAllReduce, [&](Traffic& count) { reduce(data, operation, count, true); });
}

void Collectives::reduce_scatter(std::span<float> data, const core::Stream& stream) {
  const Operation operation = begin(Fabric::Call::kReduceScatter, stream);
  check_place(operation.call, std::as_bytes(data), stream);
  guard(Call::kReduceScatter, [&](Traffic& count) { reduce(data, operation, count, false); });
}

Share Collectives::piece_of(std::int64_t floats, int r, std::int64_t offset,
                            std::int64_t piece) const {
  const Share whole = share(floats, size_, r);
  const std::int64_t begin = std::min(whole.begin + offset, whole.end);
  return {begin, std::min(begin + piece, whole.end)};
}

void Collectives::reduce(std::span<float> data, const Operation& operation, Traffic& count,
                         bool everywhere) {
  if (size_ == 1) return;
  const auto floats = static_cast<std::int64_t>(data.size());
  const std::int64_t longest = share(floats, size_, 0).size();
  const std::int64_t fitting = fabric_->piece_bytes(operation.stream.device()) /
                               static_cast<std::int64_t>(sizeof(float)) / (size_ - 1);
  const std::int64_t piece = std::min(std::max<std::int64_t>(fitting, 1), longest);
  // Once even where there is nothing to add, so that a rank that is missing is missed.
  std::int64_t offset = 0;
  do {
    reduce_piece(data, offset, piece, operation, count);
    if (everywhere) {
      const Share own = piece_of(floats, rank_, offset, piece);
      for (int step = 1; step < size_; ++step) {
        give(peer(step), std::as_bytes(part(data, own)));
        take(peer(step),
             std::as_writable_bytes(part(data, piece_of(floats, peer(step), offset, piece))));
      }
      exchange(operation, count);
    }
    offset += piece;
  } while (offset < longest);
}

void Collectives::reduce_piece(std::span<float> data, std::int64_t offset, std::int64_t piece,
                               const Operation& operation, Traffic& count) {
  const core::Device device = operation.stream.device();
  // On a GPU, making room waits for the device, as nothing after the first calls does.
  if (scratch_.size() < piece * (size_ - 1) || scratch_.device() != device) {
    scratch_ = core::Array<float>(device, piece * (size_ - 1));
  }
  const auto floats = static_cast<std::int64_t>(data.size());
  const Share own = piece_of(floats, rank_, offset, piece);
  for (int step = 1; step < size_; ++step) {
    const int r = peer(step);
    give(r, std::as_bytes(part(data, piece_of(floats, r, offset, piece))));
    float* const place = scratch_.data() + (step - 1) * piece;
    take(r, std::as_writable_bytes(std::span(place, static_cast<std::size_t>(own.size()))));
    parts_[static_cast<std::size_t>(r)] = place;
  }
  exchange(operation, count);
  float* const sums = data.data() + own.begin;
  parts_[static_cast<std::size_t>(rank_)] = sums;
  if (device.is_cuda()) {
    kernels::cuda::sum_in_order(parts_, sums, own.size(), operation.stream);
  } else {
    sum_in_order(parts_, sums, own.size());
  }
}

void Collectives::all_gather(std::span<const std::byte> mine, std::span<std::byte> all,
                             std::span<const std::int64_t> sizes, const core::Stream& stream) {
  const Operation operation = begin(Fabric::Call::kAllGather, stream);
  arguments_.check_all_gather(mine, all, sizes);
  check_place(operation.call, mine, stream);
  check_place(operation.call, all, stream);
  const auto own = static_cast<std::size_t>(rank_);
  guard(Call::kAllGather, [&](Traffic& count) {
    std::int64_t begin = 0;
    for (std::size_t r = 0; r < own; ++r) begin += sizes[r];
    const auto kept = part(all, begin, sizes[own]);
    copy_bytes(mine, kept.data(), stream);
    for (int step = 1; step < size_; ++step) {
      const auto r = static_cast<std::size_t>(peer(step));
      begin = peer(step) == 0 ? 0 : begin + sizes[(r + sizes.size() - 1) % sizes.size()];
      give(peer(step), kept);
      take(peer(step), part(all, begin, sizes[r]));
    }
    if (size_ > 1) exchange(operation, count);
  });
}

void Collectives::all_to_all(std::span<const std::byte> out,
                             std::span<const std::int64_t> out_sizes, std::span<std::byte> in,
                             std::span<const std::int64_t> in_sizes, const core::Stream& stream) {
  const Operation operation = begin(Fabric::Call::kAllToAll, stream);
  arguments_.check_all_to_all(out, out_sizes, in, in_sizes);
  check_place(operation.call, out, stream);
  check_place(operation.call, in, stream);
  guard(Call::kAllToAll, [&](Traffic& count) {
    std::int64_t out_begin = 0;
    std::int64_t in_begin = 0;
    for (int r = 0; r < size_; ++r) {
      const auto at = static_cast<std::size_t>(r);
      const auto outgoing = part(out, out_begin, out_sizes[at]);
      const auto incoming = part(in, in_begin, in_sizes[at]);
      if (r == rank_) {
        copy_bytes(outgoing, incoming.data(), stream);
      } else {
        give(r, outgoing);
        take(r, incoming);
      }
      out_begin += out_sizes[at];
      in_begin += in_sizes[at];
    }
    if (size_ > 1) exchange(operation, count);
  });
}

void Collectives::send(std::span<const std::byte> data, int to, const core::Stream& stream) {
  const Operation operation = begin(Fabric::Call::kSend, stream);
  arguments_.check_peer(operation.call, to);
  check_place(operation.call, data, stream);
  guard([&] { fabric_->send({to, data}, operation); });
  counters_[Call::kSendReceive] += one_call(static_cast<std::int64_t>(data.size()), 0);
}

void Collectives::receive(std::span<std::byte> data, int from, const core::Stream& stream) {
  const Operation operation = begin(Fabric::Call::kReceive, stream);
  arguments_.check_peer(operation.call, from);
  check_place(operation.call, data, stream);
  guard([&] { fabric_->receive({from, data}, operation); });
  counters_[Call::kSendReceive] += one_call(0, static_cast<std::int64_t>(data.size()));
}

void Collectives::barrier() {
  const Operation operation = begin(Fabric::Call::kBarrier);
  if (size_ == 1) return;
  guard([&] {
    // A byte to each: nobody can have heard from all before all have come.
    const std::byte token{};
    for (int step = 1; step < size_; ++step) {
      give(peer(step), std::span(&token, 1));
      take(peer(step), std::span(&tokens_[static_cast<std::size_t>(peer(step))], 1));
    }
    Traffic uncounted;
    exchange(operation, uncounted);
  });
}

std::unique_ptr<Communicator> Collectives::split(int color, int key) {
  const Operation operation = begin(Fabric::Call::kSplit);
  struct Choice {
    int color;
    int key;
    int rank;
  };
  std::unique_ptr<Fabric> group;
  guard([&] {
    std::vector<Choice> choices(static_cast<std::size_t>(size_));
    Choice& own = choices[static_cast<std::size_t>(rank_)];
    own = {color, key, rank_};
    for (int step = 1; step < size_; ++step) {
      give(peer(step), std::as_bytes(std::span(&own, 1)));
      take(peer(step),
           std::as_writable_bytes(std::span(&choices[static_cast<std::size_t>(peer(step))], 1)));
    }
    Traffic uncounted;
    if (size_ > 1) exchange(operation, uncounted);

    std::erase_if(choices, [&](const Choice& choice) { return choice.color != color; });
    std::sort(choices.begin(), choices.end(), [](const Choice& a, const Choice& b) {
      return std::pair(a.key, a.rank) < std::pair(b.key, b.rank);
    });
    std::vector<int> members;
    members.reserve(choices.size());
    for (const Choice& choice : choices) members.push_back(choice.rank);
    group = fabric_->group(members, operation);
  });
  return make_communicator(std::move(group), deadline_);
}

}  // namespace

std::unique_ptr<Communicator> make_communicator(std::unique_ptr<Fabric> fabric,
                                                std::chrono::milliseconds deadline) {
  return std::make_unique<Collectives>(std::move(fabric), deadline);
}

}  // namespace scalecom::comm
