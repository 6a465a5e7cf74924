#include "tests/comm/mirror.h"

#include <utility>

#include "scalecom/core/array.h"

namespace scalecom::comm::testing {

/// An array of the test's and its copy on the device; on the host it is its own.
class Mirror::Twin {
 public:
  Twin(std::span<const std::byte> host, const core::Stream& stream)
      : host_(const_cast<std::byte*>(host.data()), host.size()), stream_(stream) {
    if (!stream.device().is_cuda() || host.empty()) return;
    copy_ = core::Array<std::byte>(stream.device(), static_cast<std::int64_t>(host.size()));
    core::cuda::copy(copy_.data(), host.data(), copy_.size(), stream);
  }

  std::span<std::byte> bytes() { return copy_.size() > 0 ? copy_.span() : host_; }
  std::span<float> floats() {
    return {reinterpret_cast<float*>(bytes().data()), bytes().size() / sizeof(float)};
  }
  /// The copy of `other` where that lies within this one.
  bool holds(std::span<const std::byte> other) const {
    return !other.empty() && other.data() >= host_.data() &&
           other.data() + other.size() <= host_.data() + host_.size();
  }
  std::span<std::byte> within(std::span<const std::byte> other) {
    return bytes().subspan(static_cast<std::size_t>(other.data() - host_.data()), other.size());
  }
  void write_back() {
    if (copy_.size() > 0) core::cuda::copy(host_.data(), copy_.data(), copy_.size(), stream_);
  }

 private:
  std::span<std::byte> host_;
  const core::Stream& stream_;
  core::Array<std::byte> copy_;
};

void Mirror::finish() {
  core::cuda::synchronize(stream_);
  // A message of nothing goes nowhere, but a communicator that has failed refuses it.
  if (tells_ == Tells::kLater && size() > 1) real_.send({}, (rank() + 1) % size(), stream_);
}

void Mirror::broadcast(std::span<std::byte> data, int root, const core::Stream& /*stream*/) {
  Twin twin(data, stream_);
  real_.broadcast(twin.bytes(), root, stream_);
  twin.write_back();
  finish();
}

void Mirror::all_reduce(std::span<float> data, const core::Stream& /*stream*/) {
  Twin twin(std::as_bytes(data), stream_);
  real_.all_reduce(twin.floats(), stream_);
  twin.write_back();
  finish();
}

void Mirror::reduce_scatter(std::span<float> data, const core::Stream& /*stream*/) {
  Twin twin(std::as_bytes(data), stream_);
  real_.reduce_scatter(twin.floats(), stream_);
  twin.write_back();
  finish();
}

void Mirror::all_gather(std::span<const std::byte> mine, std::span<std::byte> all,
                        std::span<const std::int64_t> sizes, const core::Stream& /*stream*/) {
  Twin all_twin(all, stream_);
  Twin mine_twin(mine, stream_);
  real_.all_gather(all_twin.holds(mine) ? all_twin.within(mine) : mine_twin.bytes(),
                   all_twin.bytes(), sizes, stream_);
  all_twin.write_back();
  finish();
}

void Mirror::all_to_all(std::span<const std::byte> out, std::span<const std::int64_t> out_sizes,
                        std::span<std::byte> in, std::span<const std::int64_t> in_sizes,
                        const core::Stream& /*stream*/) {
  Twin out_twin(out, stream_);
  Twin in_twin(in, stream_);
  real_.all_to_all(out_twin.bytes(), out_sizes,
                   out_twin.holds(in) ? out_twin.within(in) : in_twin.bytes(), in_sizes, stream_);
  in_twin.write_back();
  finish();
}

void Mirror::send(std::span<const std::byte> data, int to, const core::Stream& /*stream*/) {
  Twin twin(data, stream_);
  real_.send(twin.bytes(), to, stream_);
  finish();
}

void Mirror::receive(std::span<std::byte> data, int from, const core::Stream& /*stream*/) {
  Twin twin(data, stream_);
  real_.receive(twin.bytes(), from, stream_);
  twin.write_back();
  finish();
}

std::unique_ptr<Communicator> Mirror::split(int color, int key) {
  return std::unique_ptr<Mirror>(new Mirror(real_.split(color, key), stream_, tells_));
}

const Counters& Mirror::counters() const {
  counters_ = real_.counters() - before_;
  return counters_;
}

}  // namespace scalecom::comm::testing
