#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "scalecom/kernels/cuda/step.h"
#include "tests/kernels/cuda/device_array.h"
#include "tests/kernels/cuda/host_rank.h"

namespace scalecom::kernels::testing {

/// Where the arrays of a DeviceRank begin, in elements from a boundary.
struct Shifts {
  std::int64_t grad = 0;
  std::int64_t memory = 0;
};

/// The same rank on the device. Every operation is done by replaying a graph, captured when it is
/// first asked for, where `captured`.
class DeviceRank {
 public:
  DeviceRank(const HostRank& host, Shifts shifts, bool captured, const core::Stream& stream);
  ~DeviceRank();
  DeviceRank(const DeviceRank&) = delete;
  DeviceRank& operator=(const DeviceRank&) = delete;

  /// The host's gradient, and its memories.
  void load(const HostRank& host);

  void first_pass();
  void take();
  void finish(float factor);
  void settle_rounding(std::int64_t first, const std::vector<float>& rounding);
  void put_back();

  /// What this rank packed.
  std::vector<std::byte> packed(const HostRank& host);
  /// What every rank packed, each in its slot.
  void set_packed(const std::vector<std::vector<std::byte>>& slots);
  std::vector<float> message() { return message_.read(); }
  void set_message(const std::vector<float>& message) { message_.write(message); }
  bool sent() { return sent_.read()[0] != 0; }

  /// Bit for bit the host's gradient and memories.
  void expect_same_arrays(HostRank& host);
  /// And what was taken: of all items, or of those that the rank named.
  void expect_same_items(HostRank& host, bool all);
  /// And the message's dense part and its flag. What is not finite may be any NaN.
  void expect_same_rest(HostRank& host);

 private:
  using Graph = std::shared_ptr<void>;

  void run(const std::string& name, const std::function<void()>& launch);

  Setting setting_;
  int rank_;
  bool captured_;
  core::Stream stream_;
  std::int64_t slot_bytes_ = 0;
  std::vector<std::int64_t> memory_places_;
  DeviceArray<std::byte> grad_;
  DeviceArray<float> memory_;
  DeviceArray<std::uint32_t> positions_;
  DeviceArray<float> before_;
  DeviceArray<float> message_;
  DeviceArray<std::byte> packed_;
  DeviceArray<std::int64_t> counter_;
  DeviceArray<std::int32_t> sent_;
  std::optional<DeviceArray<std::byte>> scratch_;
  std::optional<DeviceArray<float>> rounding_;
  std::optional<cuda::Bucket> bucket_;
  cuda::Step step_;
  std::map<std::string, Graph> graphs_;
};

}  // namespace scalecom::kernels::testing
