#pragma once

#include "scalecom/comm/communicator.h"

namespace scalecom::comm::testing {

/// Lets tests that are written for host arrays run on a device's: every call copies its arrays
/// there, makes the real call on the stream and copies back. Counts from its own beginning. With a
/// stream of the host it passes everything on as it is.
class Mirror final : public Communicator {
 public:
  /// Whether a lost peer is told by the call itself, or by the next.
  enum class Tells { kAtOnce, kLater };

  /// The real one outlives this.
  Mirror(Communicator& real, core::Stream stream, Tells tells)
      : real_(real), stream_(std::move(stream)), tells_(tells), before_(real.counters()) {}

  int rank() const override { return real_.rank(); }
  int size() const override { return real_.size(); }

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
  void barrier() override { real_.barrier(); }
  std::unique_ptr<Communicator> split(int color, int key) override;

  std::chrono::milliseconds deadline() const override { return real_.deadline(); }
  void set_deadline(std::chrono::milliseconds deadline) override { real_.set_deadline(deadline); }
  const Counters& counters() const override;

 private:
  class Twin;
  Mirror(std::unique_ptr<Communicator> real, core::Stream stream, Tells tells)
      : Mirror(*real, std::move(stream), tells) {
    owned_ = std::move(real);
  }
  /// Waits for the device, and throws what the call left to a later one.
  void finish();

  std::unique_ptr<Communicator> owned_;
  Communicator& real_;
  const core::Stream stream_;
  const Tells tells_;
  const Counters before_;
  mutable Counters counters_;
};

}  // namespace scalecom::comm::testing
