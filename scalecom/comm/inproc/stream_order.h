#pragma once

#include <optional>
#include <vector>

#include "scalecom/core/cuda/runtime.h"

namespace scalecom::comm::inproc {

/// Keeps the CUDA streams of threads that meet in order, so that none of them waits for a device. A
/// meeting has three parts: everybody marks its stream; the last to arrive joins the marks, for
/// all; everybody's stream waits for the joint mark. So n streams that all wait for one another
/// cost 3n calls and not n times n.
///
/// A seat's functions are for its own thread. What the others may do in between is the caller's to
/// keep in order: marks lie before their join, and a join before the waits for it and the next
/// mark.
class StreamOrder {
 public:
  explicit StreamOrder(int seats) : marks_(static_cast<std::size_t>(seats)) {}

  /// What is on the stream by now is what the others will wait for. The stream outlives the
  /// meeting.
  void mark(int seat, const core::Stream& stream);
  /// By the thread of `seat`, for all seats, each of which has made a mark on the same device.
  void join(int seat);
  /// What is put on the seat's stream from now on comes after all marks that were joined.
  void wait_for_all(int seat) const;

  /// Between two alone: `reader` waits for the mark of `from`.
  void wait_for(int from, const core::Stream& reader) const;
  /// What is put on `owner` from now on comes after what is on the stream of `seat`.
  void hold_back(const core::Stream& owner, int seat, const core::Stream& stream);

 private:
  struct Mark {
    std::optional<core::cuda::Event> event;
    core::Device device;
    const core::Stream* stream = nullptr;
  };
  static core::cuda::Event& event_on(core::Device device, Mark& mark);
  const Mark& mark_of(int seat) const { return marks_[static_cast<std::size_t>(seat)]; }

  std::vector<Mark> marks_;
  Mark joint_;
};

}  // namespace scalecom::comm::inproc
