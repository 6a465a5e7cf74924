#pragma once

#include <chrono>
#include <memory>
#include <vector>

#include "scalecom/comm/communicator.h"
#include "scalecom/core/array.h"

namespace bench {

/// The only rank that is there, in a world whose other ranks are a script: what they broadcast is
/// given beforehand, and what they add to a sum is nothing. So a rank's own work can be timed at
/// the public interface, as leader or as follower, without a network.
class ScriptedPeers final : public scalecom::comm::Communicator {
 public:
  /// `broadcast` is what others say whenever they broadcast.
  explicit ScriptedPeers(std::vector<std::byte> broadcast) : broadcast_(std::move(broadcast)) {}

  /// What they say lies on the stream's device from now on.
  void place_on(const scalecom::core::Stream& stream);

  int rank() const override { return kSize - 1; }
  int size() const override { return kSize; }
  void broadcast(std::span<std::byte> data, int root,
                 const scalecom::core::Stream& stream) override;
  void all_reduce(std::span<float> /*data*/, const scalecom::core::Stream& /*stream*/) override {}
  void reduce_scatter(std::span<float> /*data*/,
                      const scalecom::core::Stream& /*stream*/) override {}
  void all_gather(std::span<const std::byte> mine, std::span<std::byte> all,
                  std::span<const std::int64_t> sizes,
                  const scalecom::core::Stream& stream) override;
  void all_to_all(std::span<const std::byte> out, std::span<const std::int64_t> out_sizes,
                  std::span<std::byte> in, std::span<const std::int64_t> in_sizes,
                  const scalecom::core::Stream& stream) override;
  void send(std::span<const std::byte> data, int to, const scalecom::core::Stream& stream) override;
  void receive(std::span<std::byte> data, int from, const scalecom::core::Stream& stream) override;
  void barrier() override {}
  std::unique_ptr<Communicator> split(int color, int key) override;
  std::chrono::milliseconds deadline() const override { return {}; }
  void set_deadline(std::chrono::milliseconds /*deadline*/) override {}
  const scalecom::comm::Counters& counters() const override { return counters_; }

 private:
  /// The last of them: it follows for the first 4,095 steps.
  static constexpr int kSize = 4096;

  std::vector<std::byte> broadcast_;
  scalecom::core::Array<std::byte> placed_;
  scalecom::comm::Counters counters_;
};

}  // namespace bench
