#pragma once

#include <chrono>
#include <memory>
#include <vector>

#include "scalecom/comm/communicator.h"

namespace bench {

/// The only rank that is there, in a world whose other ranks are a script: what they broadcast is
/// given beforehand, and what they add to a sum is nothing. So a rank's own work can be timed at
/// the public interface, as leader or as follower, without a network.
class ScriptedPeers final : public scalecom::comm::Communicator {
 public:
  /// Rank `size` - 1 of `size`: it follows for the first `size` - 1 steps.
  ScriptedPeers(int size, std::vector<std::byte> broadcast)
      : size_(size), broadcast_(std::move(broadcast)) {}

  int rank() const override { return size_ - 1; }
  int size() const override { return size_; }
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
  int size_;
  std::vector<std::byte> broadcast_;
  scalecom::comm::Counters counters_;
};

}  // namespace bench
