#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "scalecom/comm/fabric.h"
#include "scalecom/comm/inproc/stream_order.h"
#include "scalecom/kernels/cuda/exchange.h"

namespace scalecom::comm::inproc {

/// Ranks that are threads of one process and copy straight from each other's buffers. Each has a
/// seat, 0 to size - 1; messages name seats, errors name ranks. Buffers on a GPU are copied by
/// kernels on the readers' streams, which are kept in order by events: threads meet as ever, but
/// wait for no device.
///
/// What is wrong with one of them is the failure of all: the team is broken from then on, those who
/// wait are woken at once, and everybody gets the same PeerError. That holds for ranks that meet in
/// different calls or with sizes that do not agree, too: a caller's mistake, but the ranks have
/// parted ways and cannot go on.
class Team {
 public:
  using Outgoing = Fabric::Outgoing;
  using Incoming = Fabric::Incoming;
  using Operation = Fabric::Operation;

  /// ranks[s] is what errors call seat s.
  explicit Team(std::vector<int> ranks);
  Team(const Team&) = delete;
  Team& operator=(const Team&) = delete;

  int size() const { return static_cast<int>(ranks_.size()); }

  /// As in Fabric, for the thread that has `seat`.
  void exchange(int seat, std::span<const Outgoing> out, std::span<const Incoming> in,
                const Operation& operation);
  void send(int seat, const Outgoing& message, const Operation& operation);
  void receive(int seat, const Incoming& message, const Operation& operation);

  /// The team of the seats `members`, in their new order; `ranks` as for the constructor. Every
  /// seat calls it, each with its own group.
  std::shared_ptr<Team> group(int seat, const std::vector<int>& members, std::vector<int> ranks,
                              const Operation& operation);

  /// The seat is empty from now on; whoever waits for it, or comes to, fails.
  void leave(int seat);

  /// Breaks the team for a reason found elsewhere.
  void fail(const std::string& failure);

 private:
  using Lock = std::unique_lock<std::mutex>;

  /// Where a message of an exchange lies; valid in the exchange of that number only.
  struct Posted {
    std::span<const std::byte> data;
    std::int64_t exchange = 0;
  };
  /// A message between two, on the sender's stack; guarded by mutex_.
  struct Parcel {
    enum class State : std::uint8_t { kOffered, kTaken, kDone };
    std::span<const std::byte> data;
    const core::Stream& stream;
    State state = State::kOffered;
  };
  struct Seat {
    /// Every wait of this seat is on its own bell, so that a message between two wakes two.
    std::condition_variable bell;
    Fabric::Call call{};
    core::Device device;
    bool arrived = false;
    bool left = false;
    /// Exchanges begun; touched by its own thread only.
    std::int64_t exchanges = 0;
    std::vector<kernels::cuda::Copy> copies;
    std::shared_ptr<Team> offered;
  };

  /// Everybody is there and what they have posted may be read; throws where that does not come
  /// about. Every meeting that succeeds is ended by part().
  void meet(int seat, const Operation& operation);
  /// Nobody reads any longer; throws where somebody found fault in between. It has no deadline, as
  /// between the two nobody waits for anything.
  void part(int seat, const Operation& operation);

  /// Before a meeting about arrays on a device.
  void mark(int seat, const Operation& operation);
  /// By the last to arrive, with the mutex held: what went wrong, if anything.
  std::string join(int seat, const Operation& operation);

  void copy(int seat, std::span<const Incoming> in, std::int64_t exchange,
            const Operation& operation);
  void copy_on_device(int seat, std::span<const Incoming> in, const Operation& operation);
  void take(Parcel& parcel, int seat, const Incoming& message, const Operation& operation);
  /// What is wrong with the messages for `seat`, if anything.
  std::string mismatch(int seat, std::span<const Incoming> in, std::int64_t exchange) const;

  std::string wrong_size(int seat, const Incoming& message, std::size_t sent) const;

  /// Whether all seats have arrived; if so, the count starts again.
  bool last_to_arrive(int seat);
  std::vector<int> ranks_not_arrived() const;
  std::string different_calls() const;
  std::string different_devices() const;
  /// Throws where the team is broken already.
  void check(const Operation& operation) const;
  [[noreturn]] void break_up(const std::string& failure);
  void ring_all();

  std::size_t at(int from, int to) const {
    return static_cast<std::size_t>(from) * ranks_.size() + static_cast<std::size_t>(to);
  }
  Seat& seat_of(int seat) { return seats_[static_cast<std::size_t>(seat)]; }
  int rank_of(int seat) const { return ranks_[static_cast<std::size_t>(seat)]; }

  const std::vector<int> ranks_;
  std::vector<Seat> seats_;
  std::vector<Posted> posted_;
  StreamOrder order_;

  std::mutex mutex_;
  int arrived_ = 0;
  std::int64_t meetings_ = 0;
  std::vector<Parcel*> parcels_;
  /// Empty as long as all is well.
  std::string failure_;
};

}  // namespace scalecom::comm::inproc
