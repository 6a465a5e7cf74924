#pragma once

#include <memory>
#include <stdexcept>

#include "scalecom/comm/communicator.h"

namespace scalecom::comm::testing {

/// What a rank that has vanished throws, so that its own code stops where it is.
struct Vanished : std::runtime_error {
  Vanished() : std::runtime_error("this rank has vanished") {}
};

/// A communicator whose rank can be made to vanish in the middle of something: it passes calls on,
/// until the one at which the rank is gone, to the others without a word. All that it was split
/// into follows it, in its deadline too.
class Vanishing final : public Communicator {
 public:
  explicit Vanishing(std::unique_ptr<Communicator> real) : real_(std::move(real)) {
    shared_->deadline = real_->deadline();
  }

  /// After so many more calls.
  void vanish_after(int calls) { shared_->left = calls; }
  void stay() { shared_->left = kNever; }

  int rank() const override { return real_->rank(); }
  int size() const override { return real_->size(); }

  void broadcast(std::span<std::byte> data, int root, const core::Stream& stream) override {
    call().broadcast(data, root, stream);
  }
  void all_reduce(std::span<float> data, const core::Stream& stream) override {
    call().all_reduce(data, stream);
  }
  void reduce_scatter(std::span<float> data, const core::Stream& stream) override {
    call().reduce_scatter(data, stream);
  }
  void all_gather(std::span<const std::byte> mine, std::span<std::byte> all,
                  std::span<const std::int64_t> sizes, const core::Stream& stream) override {
    call().all_gather(mine, all, sizes, stream);
  }
  void all_to_all(std::span<const std::byte> out, std::span<const std::int64_t> out_sizes,
                  std::span<std::byte> in, std::span<const std::int64_t> in_sizes,
                  const core::Stream& stream) override {
    call().all_to_all(out, out_sizes, in, in_sizes, stream);
  }
  void send(std::span<const std::byte> data, int to, const core::Stream& stream) override {
    call().send(data, to, stream);
  }
  void receive(std::span<std::byte> data, int from, const core::Stream& stream) override {
    call().receive(data, from, stream);
  }
  void barrier() override { call().barrier(); }
  std::unique_ptr<Communicator> split(int color, int key) override {
    return std::unique_ptr<Communicator>(new Vanishing(call().split(color, key), shared_));
  }

  std::chrono::milliseconds deadline() const override { return shared_->deadline; }
  void set_deadline(std::chrono::milliseconds deadline) override { shared_->deadline = deadline; }
  const Counters& counters() const override { return real_->counters(); }

 private:
  static constexpr int kNever = -1;
  struct Shared {
    int left = kNever;
    std::chrono::milliseconds deadline{};
  };

  Vanishing(std::unique_ptr<Communicator> real, std::shared_ptr<Shared> shared)
      : real_(std::move(real)), shared_(std::move(shared)) {}

  Communicator& call() {
    if (shared_->left == 0) throw Vanished();
    if (shared_->left > 0) --shared_->left;
    real_->set_deadline(shared_->deadline);
    return *real_;
  }

  std::unique_ptr<Communicator> real_;
  std::shared_ptr<Shared> shared_ = std::make_shared<Shared>();
};

}  // namespace scalecom::comm::testing
