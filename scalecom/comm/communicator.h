#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "scalecom/comm/traffic.h"
#include "scalecom/core/stream.h"

namespace scalecom::comm {

/// How a rank talks to the other ranks. Every rank makes the same calls in the same order, with the
/// same sizes, except where a call says otherwise. A size of 0 and a world of 1 work everywhere.
///
/// One thread at a time uses a communicator. Every wait has a deadline: when it passes, or a peer
/// is known to be lost, the call throws core::PeerError, which names the operation and the peers
/// that are missing where they are known, and so does every later call. Nothing ever hangs. A call
/// that can be seen to be wrong before anything moves throws core::UsageError and harms nothing.
/// Ranks that meet in different calls, or with sizes that do not agree, have parted ways and cannot
/// go on: that is a PeerError too, at every rank that finds out.
///
/// Sums are taken in the order of ranks, ((r0 + r1) + r2) + ..., by every engine of our own, so
/// that the same ranks give the same bits however they are divided over processes.
///
/// Arrays lie on the device of the stream that is given with them: in host memory by default, and
/// then a call returns when it is done. Given a CUDA stream, a call takes its place in it and
/// returns without waiting for the device; what fails there is told by a later call. Who cannot
/// take arrays of a device throws core::UsageError.
class Communicator {
 public:
  virtual ~Communicator() = default;

  virtual int rank() const = 0;
  virtual int size() const = 0;

  /// `data` of `root` to everybody.
  virtual void broadcast(std::span<std::byte> data, int root, const core::Stream& stream = {}) = 0;
  /// The sum over ranks, at every rank.
  virtual void all_reduce(std::span<float> data, const core::Stream& stream = {}) = 0;
  /// The sum over ranks of share `rank()` of `data`, in place; other shares are left undefined.
  /// Shares are those of comm::share().
  virtual void reduce_scatter(std::span<float> data, const core::Stream& stream = {}) = 0;
  /// Everybody's `mine`, in the order of ranks. `all` holds sum(sizes) bytes; sizes[r] is what rank
  /// r gives, and is the same list everywhere. `mine` may be its own place in `all`.
  virtual void all_gather(std::span<const std::byte> mine, std::span<std::byte> all,
                          std::span<const std::int64_t> sizes, const core::Stream& stream = {}) = 0;
  /// Piece d of `out` goes to rank d; piece s of `in` comes from rank s. Pieces lie one after the
  /// other; out_sizes[d] here is in_sizes[rank()] there.
  virtual void all_to_all(std::span<const std::byte> out, std::span<const std::int64_t> out_sizes,
                          std::span<std::byte> in, std::span<const std::int64_t> in_sizes,
                          const core::Stream& stream = {}) = 0;
  /// Only the two ranks concerned call these. Messages between two ranks keep their order. A send
  /// may wait for its receive: two ranks that send to each other first wait until the deadline.
  virtual void send(std::span<const std::byte> data, int to, const core::Stream& stream = {}) = 0;
  virtual void receive(std::span<std::byte> data, int from, const core::Stream& stream = {}) = 0;
  /// Returns when every rank has called it.
  virtual void barrier() = 0;

  /// The ranks that give the same color, in the order of (key, rank), as a communicator of their
  /// own. It must not outlive this one; its deadline is this one's; its traffic is counted apart.
  virtual std::unique_ptr<Communicator> split(int color, int key) = 0;

  /// The longest that any one call may wait for its peers.
  virtual std::chrono::milliseconds deadline() const = 0;
  virtual void set_deadline(std::chrono::milliseconds deadline) = 0;

  /// What this rank has really sent and received since the start, by kind of call.
  virtual const Counters& counters() const = 0;

  /// all_gather of equal sizes.
  void all_gather(std::span<const std::byte> mine, std::span<std::byte> all,
                  const core::Stream& stream = {}) {
    const std::vector<std::int64_t> sizes(static_cast<std::size_t>(size()),
                                          static_cast<std::int64_t>(mine.size()));
    all_gather(mine, all, sizes, stream);
  }
};

}  // namespace scalecom::comm
