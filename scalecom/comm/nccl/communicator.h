#pragma once

#include <optional>

#include "scalecom/comm/arguments.h"
#include "scalecom/comm/nccl/handle.h"
#include "scalecom/comm/nccl/watch.h"
#include "scalecom/core/array.h"

namespace scalecom::comm::nccl {

/// See nccl.h.
class NcclCommunicator final : public Communicator {
 public:
  NcclCommunicator(std::unique_ptr<Handle> handle, int rank, int size,
                   std::chrono::milliseconds deadline);

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
  void set_deadline(std::chrono::milliseconds deadline) override {
    deadline_ = checked_deadline(deadline);
  }
  const Counters& counters() const override { return counters_; }

 private:
  using Operation = Fabric::Operation;
  /// What a call asks of NCCL, with its arrays on the device.
  using Body =
      std::function<ncclResult_t(std::span<const std::byte> d_in, std::span<std::byte> d_out,
                                 ncclComm_t comm, cudaStream_t stream)>;
  /// What a call reads, and what it writes; `reads_out` where it reads that, too.
  struct Arrays {
    std::span<const std::byte> in;
    std::span<std::byte> out;
    bool reads_out = false;
  };

  /// The start of every call: refused where an earlier one failed.
  Operation begin(Fabric::Call call, const core::Stream& stream = {}) const;
  void check_place(const Operation& operation, const Arrays& arrays) const;

  /// Runs a call, wherever its arrays lie; a failure that is not the caller's mistake is the last.
  void run(const Operation& operation, const Arrays& arrays, const Body& body);
  void run_on_device(const Operation& operation, const Arrays& arrays, const Body& body);
  /// By way of the device's memory; returns when it is done.
  void run_on_host(Operation operation, const Arrays& arrays, const Body& body);
  void wait(const Operation& operation);

  std::unique_ptr<Handle> handle_;
  const int rank_;
  const int size_;
  const Arguments arguments_;
  std::chrono::milliseconds deadline_;
  Counters counters_;

  /// For arrays in host memory: made when they first come.
  std::optional<core::Stream> stream_;
  std::optional<core::cuda::Event> done_;
  core::Array<std::byte> staging_;
  /// For arrays on streams; the first to go.
  std::optional<Watch> watch_;
};

}  // namespace scalecom::comm::nccl
