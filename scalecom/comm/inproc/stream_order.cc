#include "scalecom/comm/inproc/stream_order.h"

namespace scalecom::comm::inproc {

core::cuda::Event& StreamOrder::event_on(core::Device device, Mark& mark) {
  if (!mark.event || mark.device != device) {
    mark.event.emplace(device);
    mark.device = device;
  }
  return *mark.event;
}

void StreamOrder::mark(int seat, const core::Stream& stream) {
  Mark& own = marks_[static_cast<std::size_t>(seat)];
  event_on(stream.device(), own).record(stream);
  own.stream = &stream;
}

void StreamOrder::join(int seat) {
  const Mark& own = mark_of(seat);
  for (const Mark& mark : marks_) {
    if (&mark != &own) mark.event->make_wait(*own.stream);
  }
  event_on(own.stream->device(), joint_).record(*own.stream);
  joint_.stream = own.stream;
}

void StreamOrder::wait_for_all(int seat) const {
  const core::Stream* const stream = mark_of(seat).stream;
  if (stream != joint_.stream) joint_.event->make_wait(*stream);
}

void StreamOrder::wait_for(int from, const core::Stream& reader) const {
  mark_of(from).event->make_wait(reader);
}

void StreamOrder::hold_back(const core::Stream& owner, int seat, const core::Stream& stream) {
  mark(seat, stream);
  mark_of(seat).event->make_wait(owner);
}

}  // namespace scalecom::comm::inproc
